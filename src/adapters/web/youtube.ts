import { UserError } from "../../base/lib/errors.ts";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";

/** A video, and what is said in it. */
export interface Video {
  readonly url: string;
  readonly title: string;
  readonly author: string;
  readonly seconds: number;
  readonly views: number;
  readonly description: string;
  /** Languages of the captions that there are, those made by a machine marked. */
  readonly languages: readonly string[];
  /** Language of the lines; undefined: there are no captions. */
  readonly language: string | undefined;
  readonly lines: readonly { readonly at: number; readonly text: string }[];
}

interface Track {
  readonly baseUrl: string;
  readonly language: string;
  readonly isAutomatic: boolean;
}

const site = "https://www.youtube.com";
const limits = { ms: 15_000, bytes: 10_000_000 };
const linesMost = 20_000;
const short = 10_000;

type Node = Readonly<Record<string, unknown>>;
const nodeOf = (value: unknown): Node => (typeof value === "object" && value !== null ? (value as Node) : {});
const listOf = (value: unknown): Node[] => (Array.isArray(value) ? value.map(nodeOf) : []);
const textOf = (value: unknown): string =>
  typeof value === "string" ? value.replaceAll("\0", "").slice(0, short).toWellFormed() : "";
const numberOf = (value: unknown): number => (Number.isFinite(Number(value)) ? Number(value) : 0);

const jsonOf = (text: string): Node => {
  try {
    return nodeOf(JSON.parse(text));
  } catch {
    throw new UserError("YouTube answered something that cannot be read; it may have changed.");
  }
};

/** Id of the video that an address of YouTube, or an id, names; a `UserError` for anything else. */
export function videoIdOf(video: string): string {
  if (/^[\w-]{11}$/.test(video)) return video;
  const url = URL.parse(video);
  const host = url?.hostname.replace(/^(?:www|m|music)\./, "");
  const id =
    host === "youtu.be"
      ? url?.pathname.slice(1, 12)
      : host === "youtube.com" || host === "youtube-nocookie.com"
        ? (url?.searchParams.get("v") ?? /^\/(?:embed|shorts|live|v)\/([\w-]{11})/.exec(url?.pathname ?? "")?.[1])
        : undefined;
  if (id === undefined || !/^[\w-]{11}$/.test(id)) throw new UserError("This is no address of a video on YouTube.");
  return id;
}

/** Asks YouTube, as its own app does, for facts about a video and for its captions. */
export class YouTube {
  readonly #clientVersion: string;
  readonly #base: string;

  /** @param base where YouTube is, but in tests */
  constructor(clientVersion: string, base = site) {
    this.#clientVersion = clientVersion;
    this.#base = base;
  }

  /** Rejects with a `UserError` that says what YouTube answered, or with the signal's reason. */
  async watch(video: string, language: string, signal: AbortSignal): Promise<Video> {
    const id = videoIdOf(video);
    const player = jsonOf(await this.#player(id, signal));
    const { status, reason } = nodeOf(player.playabilityStatus);
    if (status !== "OK") throw new UserError(refusalOf(textOf(status), textOf(reason)));
    const { captionTracks } = nodeOf(nodeOf(player.captions).playerCaptionsTracklistRenderer);
    const tracks = listOf(captionTracks).map(
      (track): Track => ({
        baseUrl: textOf(track.baseUrl),
        language: textOf(track.languageCode),
        isAutomatic: track.kind === "asr",
      }),
    );
    const details = nodeOf(player.videoDetails);
    const [best] = tracks.toSorted((one, other) => rankOf(one, language) - rankOf(other, language));
    return {
      url: `${site}/watch?v=${id}`,
      title: textOf(details.title),
      author: textOf(details.author),
      seconds: numberOf(details.lengthSeconds),
      views: numberOf(details.viewCount),
      description: textOf(details.shortDescription),
      languages: tracks.map((track) => track.language + (track.isAutomatic ? " (automatic)" : "")),
      language: best?.language,
      lines: best ? await this.#lines(best, signal) : [],
    };
  }

  #player(id: string, signal: AbortSignal): Promise<string> {
    const client = { clientName: "ANDROID", clientVersion: this.#clientVersion, androidSdkVersion: 30, hl: "en" };
    return this.#ask(new URL(`${this.#base}/youtubei/v1/player?prettyPrint=false`), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ context: { client }, videoId: id }),
      signal,
    });
  }

  async #lines({ baseUrl }: Track, signal: AbortSignal): Promise<Video["lines"]> {
    const url = URL.parse(baseUrl, site);
    // The address comes from an answer: it leads nowhere else.
    if (url?.origin !== site)
      throw new UserError("YouTube names a strange address for the captions: they are not read.");
    const wantsProof = "YouTube gives these captions only to its own apps: they cannot be read.";
    if (url.searchParams.get("exp")?.includes("xpe")) throw new UserError(wantsProof);
    url.searchParams.set("fmt", "json3");
    const body = await this.#ask(new URL(`${this.#base}${url.pathname}${url.search}`), { signal });
    if (body === "") throw new UserError(wantsProof);
    return listOf(jsonOf(body).events)
      .slice(0, linesMost)
      .map(({ tStartMs, segs }) => ({
        at: numberOf(tStartMs) / 1_000,
        text: listOf(segs)
          .map(({ utf8 }) => textOf(utf8))
          .join("")
          .replace(/\s+/g, " ")
          .trim(),
      }))
      .filter(({ text }) => text !== "");
  }

  async #ask(url: URL, init: RequestInit & { readonly signal: AbortSignal }): Promise<string> {
    try {
      const response = await fetchWithin(url, { ...init, redirect: "error" }, limits);
      const body = await response.text();
      if (response.status === 429) throw new UserError("YouTube was asked too often from here; try again later.");
      if (!response.ok)
        throw new UserError(`YouTube answered ${response.status}; web.youtube.clientVersion may be too old.`);
      return body;
    } catch (thrown) {
      init.signal.throwIfAborted();
      if (thrown instanceof UserError) throw thrown;
      throw new UserError(`YouTube cannot be reached: ${networkReason(thrown).message}.`);
    }
  }
}

/** The language that was asked for comes first, and captions of people before those of machines. */
const rankOf = ({ language, isAutomatic }: Track, wanted: string): number =>
  (language === wanted ? 0 : language.split("-")[0] === wanted.split("-")[0] ? 2 : 4) + (isAutomatic ? 1 : 0);

/** Puts a refusal into our words: YouTube's could be anything. */
const refusalOf = (status: string, reason: string): string => {
  if (status === "LOGIN_REQUIRED")
    return /age/i.test(reason)
      ? "YouTube shows this video only to people who say how old they are."
      : "YouTube takes this machine for a robot, and shows nothing.";
  if (status === "ERROR") return "There is no such video on YouTube, or it is private.";
  if (status === "LIVE_STREAM_OFFLINE") return "This is a live broadcast that has not begun.";
  return "YouTube does not show this video here.";
};
