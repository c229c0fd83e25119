/** A mistake that the person can mend: its message is shown to them as it is, so it must say what to do. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** What a thrown value says, for logs and for `cause`-less messages. */
export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));
