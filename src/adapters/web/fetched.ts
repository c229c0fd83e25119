import { UserError } from "../../base/lib/errors.ts";

/** An answer, as far as it was taken. */
export interface Fetched {
  /** Address that it came from, behind all redirects. */
  readonly url: string;
  /** Media type in lower case, with its parameters; '' where none was said. */
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** There was more. */
  readonly isTruncated: boolean;
}

export interface FetchRequest {
  readonly signal: AbortSignal;
  readonly accept: string;
  /** Bytes that are taken of an answer of this type, decompressed; undefined: it is not read. */
  readonly most: (contentType: string) => number | undefined;
}

/** Way by which addresses are fetched that somebody's text may have named. */
export interface Fetcher {
  /** Rejects with a `UserError` that says why nothing came, or with the signal's reason. */
  get(address: string, request: FetchRequest): Promise<Fetched>;
  close(): Promise<void>;
}

/** Answer whose body was not taken yet. */
interface Answer {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: (AsyncIterable<Uint8Array> & { cancel(): Promise<void> }) | null;
}

/** Takes a body up to its limit. Leaving the loop ends the connection. */
export async function taken(url: URL, response: Answer, most: FetchRequest["most"]): Promise<Fetched> {
  const contentType = (response.headers.get("content-type") ?? "").toLowerCase();
  const refuse = async (why: string): Promise<never> => {
    await response.body?.cancel();
    throw new UserError(why);
  };
  // Words of the server do not stand in errors: they could be anything.
  if (response.status < 200 || response.status > 299)
    return refuse(`${url.host} answered ${response.status}${meaningOf(response.status)}.`);
  const limit = most(contentType);
  if (limit === undefined)
    return refuse(
      `${url.host} has no page there but ${/^[\w.+/-]{1,80}/.exec(contentType)?.[0] ?? "something else"}: this cannot be shown.`,
    );
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    const room = limit - size;
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    size += Math.min(chunk.length, room);
    if (chunk.length > room) return { url: url.href, contentType, bytes: joined(chunks, size), isTruncated: true };
  }
  return { url: url.href, contentType, bytes: joined(chunks, size), isTruncated: false };
}

const meaningOf = (status: number): string => {
  if (status === 404 || status === 410) return ": there is no such page";
  if (status === 401 || status === 403) return ": it does not let us in";
  return status === 429 ? ": it was asked too often" : "";
};

/** All chunks in memory of their own, which can be handed to a thread. */
const joined = (chunks: readonly Uint8Array[], size: number): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
};
