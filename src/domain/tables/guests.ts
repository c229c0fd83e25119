import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** Somebody who should be in a room of the bridge's own, or should not. */
export interface Misplaced {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly what: "invite" | "kick";
}

/** Members of rooms of the bridge's own. */
export class Guests {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Finds people who are to be invited into rooms of the bridge's own, and people who are to leave them: thoughts rooms
   * are for the agent's owner and the admins, `control` for the admins. A person who left is invited again only when
   * `promoted`.
   */
  findMisplaced(
    admins: readonly UserId[],
    promoted: readonly UserId[],
    control: RoomId | undefined,
  ): Promise<Misplaced[]> {
    return this.#database.run(
      (sql) => sql<Misplaced[]>`
        with own as (
          select a.thoughts_room as room_id, a.owner from agents a where a.thoughts_room is not null and a.deleted_at is null
          union all select ${control ?? null}, null where ${control ?? null}::text is not null
        ), wanted as (
          select room_id, owner as user_id from own where owner is not null
          union select room_id, admin from own, unnest(${[...admins]}::text[]) admin
        )
        select w.room_id as "roomId", w.user_id as "userId", 'invite' as what
        from wanted w left join members m on m.room_id = w.room_id and m.user_id = w.user_id
        where m.membership is null or (m.membership = 'leave' and w.user_id = any (${[...promoted]}))
        union all
        select m.room_id, m.user_id, 'kick'
        from members m join own on own.room_id = m.room_id
        where m.kind = 'human' and m.membership in ('join', 'invite')
          and not exists (select 1 from wanted w where w.room_id = m.room_id and w.user_id = m.user_id)`,
    );
  }
}
