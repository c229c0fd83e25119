import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { FilePlace } from "./files.ts";

/** Somebody who wants to get at files: from which conversation, for whom, having seen what. */
export interface FileViewer {
  readonly agentUserId: UserId;
  readonly owner: UserId;
  readonly roomId: RoomId;
  readonly requesters: readonly UserId[];
  readonly sources: readonly RoomId[];
}

export interface FileRights {
  /** The agent is where the files are. */
  readonly isPresent: boolean;
  /** All for whom it is done may read there, if not each file. */
  readonly isAdmitted: boolean;
  /** They may read these files. */
  readonly isEntitled: boolean;
  /** So may everybody in the conversation now. */
  readonly isOpen: boolean;
  /** They may read all that a sandbox may hold, where the file is in one. */
  readonly isHeldOpen: boolean;
  /** See `FileInfo`; none without a file. */
  readonly sources: readonly RoomId[];
  /** Everybody who may read the files may also read what was shown in the turn. */
  readonly isClean: boolean;
}

/** A file that an agent's settings name for its scratchpad. */
export interface Scratchpad {
  readonly path: string;
  readonly owner: UserId;
}

/** The walls around files, as they stand at the moment of asking. */
export class FileAccess {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * @param place a room, a user, or '' for the agent's home
   * @param file the one that is wanted there, where it is one
   */
  async rights(
    { agentUserId, owner, roomId, requesters, sources }: FileViewer,
    place: RoomId,
    file?: FilePlace,
  ): Promise<FileRights> {
    const [share, path] = [file?.share ?? "", file?.path ?? ""];
    const [row] = await this.#database.run(
      (sql) => sql<FileRights[]>`
        with held as (
          select source from sandboxes s join agents a on a.name = s.agent, unnest(s.sources) source
          where ${share} = 'sandbox' and a.user_id = ${agentUserId} and s.room_id = ${place} and source <> ${place}
        )
        select is_at(${agentUserId}, ${owner}, ${place}) as "isPresent",
          may_read(${[...requesters]}, ${place}, ${owner}) as "isAdmitted",
          may_read(${[...requesters]}, ${place}, ${owner}) and not came_too_early(${[...requesters]}, ${share}, ${path})
            and not exists (select 1 from held where not may_read(${[...requesters]}, source, ${owner})) as "isEntitled",
          may_read(audience_of(${roomId}, ${owner}), ${place}, ${owner})
            and not came_too_early(audience_of(${roomId}, ${owner}), ${share}, ${path})
            and not exists (select 1 from held where not may_read(audience_of(${roomId}, ${owner}), source, ${owner})) as "isOpen",
          not exists (select 1 from held where not may_read(audience_of(${roomId}, ${owner}), source, ${owner})) as "isHeldOpen",
          coalesce(case when ${share} = 'sandbox' then (select array_agg(source) from held)
            else (select f.sources from files f where f.share = ${share} and f.path = ${path}) end, '{}') as sources,
          coalesce((
            select bool_and(may_pass_on(audience_of(${place}, ${owner}), audience_of(${roomId}, ${owner}), s, ${owner}))
            from unnest(${[...sources]}::text[]) s), true) as "isClean"`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /** Of files, the paths of those that somebody who would see them may not read; see `too_early`. */
  async tooEarly(
    { owner, roomId, requesters }: FileViewer,
    share: string,
    paths: readonly string[],
  ): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ path: string }[]>`
        select path from too_early(audience_of(${roomId}, ${owner}) || ${[...requesters]}::text[], ${share}, ${[...paths]}::text[]) path`,
    );
    return rows.map((row) => row.path);
  }

  /** The scratchpads of all agents. */
  scratchpads(): Promise<Scratchpad[]> {
    return this.#database.run(
      (sql) => sql<Scratchpad[]>`
        select path, owner from (select scratchpad_of(name) as path, owner from agents where deleted_at is null) pads
        where path is not null`,
    );
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
