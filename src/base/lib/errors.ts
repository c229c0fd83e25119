import { toStorable } from "./storable.ts";

/** A mistake that the person can mend: its message is shown to them as it is, so it must say what to do. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** Not now: something that is needed is unwell. Nothing has failed; whoever wanted it keeps it, and tries again. */
export class RetryError extends Error {
  override readonly name = "RetryError";
}

/** The process ends, and another goes on with the work. */
export class ShuttingDown extends Error {
  override readonly name = "ShuttingDown";
}

/** Text of a thrown value, for logs, tables and people. The words may be somebody else's. */
export const messageOf = (thrown: unknown): string =>
  toStorable(thrown instanceof Error ? thrown.message : String(thrown));
