import { afterIdling } from "./clock.ts";

/** Limits of an answer, in bytes and in time: nobody outside is believed to come to an end. */
export interface Limits {
  /** From the request to the last byte of its answer. */
  readonly ms: number;
  readonly bytes: number;
}

/** The answer went on beyond one of its limits, and was let go. */
export class OverLimit extends Error {
  override readonly name = "OverLimit";
  readonly limit: "time" | "size";

  constructor(limit: "time" | "size", message: string) {
    super(message);
    this.limit = limit;
  }
}

/**
 * Asks a server, as `fetch` does, and is the only place that does: test/architecture.test.ts holds it. The answer and
 * its body reject with an `OverLimit` beyond the limits, and the connection is ended. An answer that is not read ends
 * by its time.
 */
export async function fetchWithin(url: string | URL, init: RequestInit, limits: Limits): Promise<Response> {
  const late = new AbortController();
  const inTime = afterIdling(limits.ms, () =>
    late.abort(new OverLimit("time", `no whole answer within ${limits.ms / 1_000} s`)),
  );
  const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
  try {
    const response = await fetch(url, { ...init, signal });
    const { body, status, statusText, headers } = response;
    if (body === null) {
      inTime();
      return response;
    }
    const announced = Number(headers.get("content-length") ?? 0);
    if (announced > limits.bytes) {
      await body.cancel();
      throw new OverLimit("size", `it has ${announced} bytes, and ${limits.bytes} are the most that is taken`);
    }
    return new Response(body.pipeThrough(noLonger(limits.bytes, inTime)), { status, statusText, headers });
  } catch (thrown) {
    inTime();
    throw thrown;
  }
}

/** Hands up to `most` bytes through; calls `ended` when there is nothing more to wait for. */
export const noLonger = (
  most: number,
  ended: () => void,
): TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>> => {
  let size = 0;
  return new TransformStream({
    transform(bytes, controller) {
      size += bytes.byteLength;
      if (size > most) throw new OverLimit("size", `it has more than ${most} bytes, the most that is taken`);
      controller.enqueue(bytes);
    },
    flush: ended,
    cancel: ended,
  });
};

/** Finds what the network said below the words of `fetch`, which are "fetch failed" and "terminated". */
export const networkReason = (thrown: unknown): Error => {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  if (error.cause instanceof Error) return networkReason(error.cause);
  if (error.message !== "") return error;
  // Where a name has several addresses, and none answers, only the code says why.
  return new Error("code" in error ? String(error.code) : "no answer", { cause: undefined });
};
