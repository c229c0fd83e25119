import type { Video } from "../../adapters/web/youtube.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { addressesIn } from "../../base/lib/web-address.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { WindowSource } from "./windows.ts";

/** Reads videos of YouTube. */
export interface Videos {
  watch(video: string, language: string, signal: AbortSignal): Promise<Video>;
}

/** Arguments of a video, beside its address. */
export interface VideoArguments {
  readonly language: string;
  readonly hasCaptions: boolean;
}

/** Name of videos among the texts that nobody vouches for. */
export const videoTaint = "web:www.youtube.com";
const textMost = 200_000;

/** A video: facts about it, and its captions, each with its time. */
export const videoSource = (videos: Videos | undefined, clock: Clock): WindowSource => ({
  async read(video, args, { signal }) {
    if (!videos) throw new UserError("Videos cannot be read here: web.youtube is not set in config.yaml.");
    const { language, hasCaptions } = JSON.parse(args) as VideoArguments;
    const found = await videos.watch(video, language, signal);
    const { url, title, author, seconds, views, description, languages, lines } = found;
    const said = lines.map(({ at, text }) => `${timeOf(at)} ${text}`);
    const captions = said.length > 0 ? said : ["There are no captions."];
    const content = [
      `By ${author}, ${timeOf(seconds)} long, seen ${views} times. Captions: ${languages.join(", ") || "none"}.`,
      ...(description === "" ? [] : ["", description]),
      ...(hasCaptions ? ["", ...captions] : []),
    ].join("\n");
    return {
      contentType: "text/plain",
      content: content.slice(0, textMost).toWellFormed(),
      sources: [],
      taint: [videoTaint],
      title,
      attributes: {
        fetchedAt: eventTime(clock.now()),
        ...(hasCaptions && found.language !== undefined && { language: found.language }),
        ...(content.length > textMost && { part: "beginning" }),
      },
      addresses: addressesIn(`${url}\n${content}`, 1_000),
    };
  },
});

/** Seconds as 1:02:03, or 2:03. */
const timeOf = (seconds: number): string => {
  const parts = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return (parts[0] === 0 ? parts.slice(1) : parts)
    .map((part, at) => (at === 0 ? String(part) : String(part).padStart(2, "0")))
    .join(":");
};
