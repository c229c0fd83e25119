import { setRequestFn } from "@vector-im/matrix-bot-sdk";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";

/** A stretch of a timeline or the state of a large room may be long; all other answers are a few words. */
const readMost = 128_000_000;
const otherMost = 1_000_000;

/** A request as the bridge library wants it made: the part of the package `request` that it uses. */
interface LibraryRequest {
  readonly uri: string;
  readonly method: string;
  readonly qs?: Readonly<Record<string, unknown>> | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  /** For the whole answer. */
  readonly timeout: number;
}

interface LibraryAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON where it is any, otherwise text. */
  readonly body: unknown;
}

type Done = (error: Error | null, answer?: LibraryAnswer, body?: unknown) => void;

/** Puts limits on the time and the size of whatever the bridge library asks the homeserver, by us or by itself. */
export const limitLibraryRequests = (): void =>
  setRequestFn((request: LibraryRequest, done: Done) => {
    send(request).then(
      (answer) => done(null, answer, answer.body),
      (thrown: unknown) => done(networkReason(thrown)),
    );
  });

async function send({ uri, method, qs, headers, body, timeout }: LibraryRequest): Promise<LibraryAnswer> {
  const isRead = method === "GET";
  const init: RequestInit = {
    method,
    headers,
    // A redirect could send a body somewhere else, or as something else.
    redirect: isRead ? "follow" : "manual",
    ...(body !== undefined && { body: body as string | Uint8Array<ArrayBuffer> }),
  };
  const limits = { ms: timeout, bytes: isRead ? readMost : otherMost };
  const response = await fetchWithin(uri + queryOf(qs ?? {}), init, limits);
  return {
    statusCode: response.status,
    headers: Object.fromEntries(response.headers),
    body: parseIfJson(await response.text()),
  };
}

const queryOf = (values: Readonly<Record<string, unknown>>): string => {
  const pairs = Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  if (pairs.length === 0) return "";
  return `?${String(new URLSearchParams(pairs)).replaceAll("+", "%20")}`;
};

const parseIfJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
