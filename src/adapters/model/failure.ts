import { APIConnectionError, APIError } from "openai";
import { z } from "zod";
import { messageOf } from "../../base/lib/errors.ts";
import { OverLimit } from "../../base/lib/outside.ts";

/** The stream was not what the protocol promises: another attempt may bring a better one. */
export class StreamError extends Error {
  override readonly name = "StreamError";
}

/** `unavailable` may work later, `refused` never with this request; the other two work once somebody has acted. */
export type ModelErrorKind = "unavailable" | "refused" | "out of money" | "misconfigured";

/** No answer from the model, and no more attempts. The message is for operators, not for those who talk to agents. */
export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ModelErrorKind;
  readonly status: number | undefined;

  constructor(message: string, failure: Failure) {
    super(message);
    this.kind = failure.kind;
    this.status = failure.status;
  }
}

/** Failure of one attempt. */
export interface Failure {
  readonly kind: ModelErrorKind;
  readonly status: number | undefined;
  /** Another attempt may succeed. */
  readonly mayRetry: boolean;
  /** Time that the provider asked us to wait. */
  readonly afterMs: number | undefined;
  /** The provider's words, or the network's. */
  readonly words: string;
}

const kindOf = (status: number | undefined, code: string | null | undefined): ModelErrorKind => {
  if (status === 402 || code === "insufficient_quota") return "out of money";
  if (status === undefined || status >= 500 || status === 408 || status === 409 || status === 429) return "unavailable";
  return status === 401 || status === 404 ? "misconfigured" : "refused";
};

/** Reads `Retry-After`, seconds or a date, as milliseconds from `now`. */
const retryAfterMs = (header: string | null | undefined, now: Date): number | undefined => {
  if (!header) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(header.trim()) ? Number(header) * 1000 : Date.parse(header) - now.getTime();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
};

/** OpenRouter passes on the words of the provider behind it. */
const upstream = z.object({ metadata: z.object({ raw: z.string() }) });

const wordsOf = (error: APIError): string => {
  const words = error.message.replace(/^\d{3} /, "");
  const behind = upstream.safeParse(error.error);
  return behind.success ? `${words} (${behind.data.metadata.raw})` : words;
};

const deepestCause = (error: Error): Error => (error.cause instanceof Error ? deepestCause(error.cause) : error);

/** Says what a thrown value means; undefined: it is no failure of the model or the network, but a bug. */
export const diagnose = (thrown: unknown, now: Date): Failure | undefined => {
  if (thrown instanceof APIError && !(thrown instanceof APIConnectionError)) {
    // In the middle of a stream the status is gone, and stands in the error's code.
    const status = thrown.status ?? (Number(thrown.code) || undefined);
    const kind = kindOf(status, thrown.code);
    const afterMs = retryAfterMs(thrown.headers?.get("retry-after"), now);
    return { kind, status, mayRetry: kind === "unavailable", afterMs, words: wordsOf(thrown) };
  }
  // fetch says "terminated" with the reset as its cause, the SDK a SyntaxError for broken JSON in the stream.
  const isNetwork =
    thrown instanceof APIConnectionError ||
    thrown instanceof StreamError ||
    thrown instanceof OverLimit ||
    thrown instanceof SyntaxError ||
    (thrown instanceof TypeError && thrown.cause !== undefined);
  if (!isNetwork) return undefined;
  const cause = deepestCause(thrown);
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : "no words";
  // An answer without an end would have none the next time, and has been paid for.
  const mayRetry = !(cause instanceof OverLimit);
  return { kind: "unavailable", status: undefined, mayRetry, afterMs: undefined, words: messageOf(cause) || code };
};
