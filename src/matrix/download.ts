import { splitMxc } from "./attachment.ts";
import { HomeserverError } from "./client.ts";

/** The file is larger than what we take. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** Where the homeserver is, and the access token with which it is asked. */
export interface Access {
  readonly url: string;
  readonly token: string;
}

/**
 * Reads a file from the homeserver, no further than `maxBytes`: what is larger is let go, unread where the homeserver
 * says its size. Throws `TooLarge`, `HomeserverError`, or the signal's reason.
 */
export const download = async (
  { url, token }: Access,
  mxc: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> => {
  const { server, mediaId } = splitMxc(mxc) ?? { server: "", mediaId: "" };
  const path = `/_matrix/client/v1/media/download/${encodeURIComponent(server)}/${encodeURIComponent(mediaId)}`;
  const what = `GET ${path}`;
  try {
    const response = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}` }, signal });
    if (!response.ok) throw new HomeserverError(what, await refusalOf(response));
    return await readBody(response, maxBytes);
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HomeserverError || thrown instanceof TooLarge) throw thrown;
    throw new HomeserverError(what, thrown);
  }
};

const readBody = async (response: Response, maxBytes: number): Promise<Buffer> => {
  const chunks: Uint8Array[] = [];
  let size = Number(response.headers.get("content-length") ?? 0);
  if (size > maxBytes) {
    await response.body?.cancel();
    throw new TooLarge(`it has ${size} bytes, and ${maxBytes} are the most that is taken`);
  }
  size = 0;
  // Leaving the loop by an error ends the connection.
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new TooLarge(`it has more than ${maxBytes} bytes, the most that is taken`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

/** What the homeserver said, as `HomeserverError` reads it. */
const refusalOf = async (response: Response): Promise<object> => {
  const said: unknown = await readBody(response, 65_536)
    .then((bytes) => JSON.parse(bytes.toString()) as unknown)
    .catch(() => undefined);
  const { errcode, error, retry_after_ms: retryAfterMs } = (said ?? {}) as Record<string, unknown>;
  return {
    statusCode: response.status,
    errcode,
    error,
    retryAfterMs,
    headers: Object.fromEntries(response.headers),
  };
};
