import { fetchWithin, type Limits, networkReason, OverLimit } from "../../base/lib/outside.ts";
import { splitMxc } from "./attachment.ts";
import { HomeserverError } from "./client.ts";

/** The file is larger than what we take. */
export class TooLarge extends Error {
  override readonly name = "TooLarge";
}

/** Address of the homeserver, and the access token with which it is asked. */
export interface MediaAccess {
  readonly url: string;
  readonly token: string;
}

/**
 * Reads a file from the homeserver, no further than the limits: what is larger is let go, unread where the homeserver
 * says its size. Throws `TooLarge`, `HomeserverError`, or the signal's reason.
 */
export const download = async (
  { url, token }: MediaAccess,
  mxc: string,
  limits: Limits,
  signal: AbortSignal,
): Promise<Buffer> => {
  const { server, mediaId } = splitMxc(mxc) ?? { server: "", mediaId: "" };
  const path = `/_matrix/client/v1/media/download/${encodeURIComponent(server)}/${encodeURIComponent(mediaId)}`;
  const what = `GET ${path}`;
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetchWithin(`${url}${path}`, { headers, signal }, limits);
    if (!response.ok) throw new HomeserverError(what, await refusalOf(response));
    return Buffer.from(await response.arrayBuffer());
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof HomeserverError) throw thrown;
    if (thrown instanceof OverLimit && thrown.limit === "size") throw new TooLarge(thrown.message);
    throw new HomeserverError(what, networkReason(thrown));
  }
};

/** Reads the homeserver's refusal, in the form that `HomeserverError` takes. */
const refusalOf = async (response: Response): Promise<object> => {
  const said: unknown = await response.json().catch(() => undefined);
  const { errcode, error, retry_after_ms: retryAfterMs } = (said ?? {}) as Record<string, unknown>;
  return {
    statusCode: response.status,
    errcode,
    error,
    retryAfterMs,
    headers: Object.fromEntries(response.headers),
  };
};
