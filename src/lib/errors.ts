import { storable } from "./storable.ts";

/** A mistake that the person can mend: its message is shown to them as it is, so it must say what to do. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** What a thrown value says, for logs, tables and people: the words may be those of others. */
export const messageOf = (thrown: unknown): string =>
  storable(thrown instanceof Error ? thrown.message : String(thrown));
