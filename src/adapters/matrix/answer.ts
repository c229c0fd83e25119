import { messageOf } from "../../base/lib/errors.ts";

/** Nobody waits longer, whatever he is told: a timer that is set to more than 24 days rings at once. */
const longestRetryMs = 24 * 60 * 60_000;
/** Statuses of what another attempt may get through. */
const mayChange: ReadonlySet<number> = new Set([401, 408, 429]);

/** The homeserver said no, or could not be reached. */
export class HomeserverError extends Error {
  override readonly name = "HomeserverError";
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly errcode: string;
  readonly retryAfterMs: number | undefined;

  constructor(what: string, thrown: unknown) {
    const answer = (typeof thrown === "object" && thrown !== null ? thrown : {}) as {
      statusCode?: number;
      errcode?: string;
      error?: string;
      retryAfterMs?: number;
      headers?: Readonly<Record<string, unknown>>;
    };
    const status = answer.statusCode ?? 0;
    const said = status === 0 ? messageOf(thrown) : `${status} ${answer.errcode ?? ""} ${answer.error ?? ""}`.trim();
    super(`${what}: ${said}`, { cause: thrown });
    this.status = status;
    this.errcode = answer.errcode ?? "";
    // The library reads the header only where the body is Matrix's own.
    const ms = Number(answer.retryAfterMs ?? Number(answer.headers?.["retry-after"]) * 1_000);
    this.retryAfterMs = ms > 0 ? Math.min(ms, longestRetryMs) : undefined;
  }

  /** Nobody answered, or whatever stands before the homeserver: its own 502, by which it tells of others, has a code. */
  get isAway(): boolean {
    return this.status === 0 || (this.status >= 502 && this.errcode === "");
  }

  /**
   * Trying again cannot help: the homeserver refuses the request itself. What stands before a homeserver that is away
   * may answer 404, and knows no errcode; what is too large for it stays so. `M_UNRECOGNIZED` says that whoever was
   * asked does not know the address: a process of the homeserver to which a proxy passes it by mistake, or for now.
   */
  get isFinal(): boolean {
    if (this.status < 400 || this.status >= 500 || mayChange.has(this.status)) return false;
    if (this.errcode === "M_UNRECOGNIZED") return false;
    return this.errcode !== "" || this.status === 413;
  }

  /** The homeserver does not know the device of the sender any more. Before Matrix 1.17 it had another word for it. */
  get lacksDevice(): boolean {
    return this.status === 400 && /^M_EXCLUSIVE$|M_UNKNOWN_DEVICE$/.test(this.errcode);
  }
}

/**
 * The id in an answer that must hold one. Whatever stands before a homeserver may answer 200 with something else: then
 * nobody knows whether it was done, and it is tried again.
 */
export const idIn = (answer: Record<string, unknown>, name: string, sigil: string, path: string): string => {
  const id = answer[name];
  if (typeof id === "string" && id.startsWith(sigil)) return id;
  throw new HomeserverError(path, new Error(`the answer is a 200 without ${name}`));
};

export const listIn = (answer: Record<string, unknown>, name: string, path: string): unknown[] => {
  const list = answer[name];
  if (Array.isArray(list)) return list;
  throw new HomeserverError(path, new Error(`the answer is a 200 without ${name}`));
};
