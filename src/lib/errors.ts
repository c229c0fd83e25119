/** A mistake that the person can mend: its message is shown to them as it is, so it must say what to do. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** It did not work now, it may work later. `afterMs` is how long the other side asked us to wait. */
export class RetryError extends Error {
  override readonly name = "RetryError";
  readonly afterMs: number | undefined;
  constructor(message: string, options: { afterMs?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.afterMs = options.afterMs;
  }
}

/** What a thrown value says, for logs and for `cause`-less messages. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
