import type { RoomId, UserId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";

/** Who wants to get at files, from which conversation, for whom, having seen what. */
export interface FileViewer {
  readonly agentUserId: UserId;
  readonly owner: UserId;
  readonly roomId: RoomId;
  readonly requesters: readonly UserId[];
  readonly sources: readonly RoomId[];
}

export interface FileRights {
  /** The agent is where the files are. */
  readonly present: boolean;
  /** All for whom it is done may read them. */
  readonly entitled: boolean;
  /** So may everybody in the conversation now. */
  readonly open: boolean;
  /** Everybody who may read the files may also read what was shown in the turn. */
  readonly clean: boolean;
}

/** The walls around files, as they stand at the moment of asking. */
export class FileAccess {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** @param place a room, a user, or '' for the agent's home */
  async rights({ agentUserId, owner, roomId, requesters, sources }: FileViewer, place: RoomId): Promise<FileRights> {
    const [row] = await this.#database.run(
      (sql) => sql<FileRights[]>`
        select is_at(${agentUserId}, ${owner}, ${place}) as present, may_read(${[...requesters]}, ${place}, ${owner}) as entitled,
          may_read(audience_of(${roomId}, ${owner}), ${place}, ${owner}) as open,
          coalesce((
            select bool_and(may_read(audience_of(${place}, ${owner}), s, ${owner})) from unnest(${[...sources]}::text[]) s), true) as clean`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /** Rooms whose files may be read from here. */
  async openRooms({ agentUserId, owner, roomId, requesters }: FileViewer): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        select m.room_id as "roomId" from members m
        where m.user_id = ${agentUserId} and m.membership = 'join'
          and may_read(audience_of(${roomId}, ${owner}), m.room_id, ${owner}) and may_read(${[...requesters]}, m.room_id, ${owner})`,
    );
    return rows.map((row) => row.roomId);
  }

  /** Users whose files may be read from here: one at most, who is alone with the agent. */
  async openUsers({ agentUserId, owner, roomId, requesters }: FileViewer): Promise<UserId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select u as "userId" from unnest(${[...requesters]}::text[]) u
        where may_read(audience_of(${roomId}, ${owner}), u, ${owner}) and may_read(${[...requesters]}, u, ${owner})
          and is_at(${agentUserId}, ${owner}, u)`,
    );
    return rows.map((row) => row.userId);
  }
}
