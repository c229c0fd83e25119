import type { Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** Something that a conversation is about to say. */
export interface Hearing {
  /** The room of the conversation, in which it will be heard. */
  readonly here: RoomId;
  /** The humans who were there whenever something was rendered. */
  readonly audience: readonly UserId[];
  /** Sources of everything that was rendered, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** The agent's. */
  readonly owner: UserId;
}

/** Part of a statement: whether everybody who hears it at that moment may read what it was made from. */
export const mayHear = (sql: Sql, { here, audience, sources, owner }: Hearing) =>
  sql`may_hear(${here}, ${here}, ${[...audience]}::text[], ${[...sources]}::text[], ${owner})`;
