import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { eventColumns, type StoredEvent } from "./events.ts";
import type { Seat } from "./windows.ts";

/** A part of a room's history: each event is a line, and the first has the number 1. */
interface Lines {
  readonly roomId: RoomId;
  /** The number of the last line. */
  readonly bottom: number;
  readonly count: number;
}

interface Thought {
  readonly entry: string;
  readonly taint: string[];
  /** Rooms that its turn had been shown, and its own. */
  readonly sources: RoomId[];
}

/** Histories of rooms, as far back as they go. What the conversation may not read is not there. */
export class Past {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** A room of the agent by the part of its id before the colon, with the number of lines of its history. */
  async room({ userId, owner, here }: Seat, localpart: string): Promise<{ roomId: RoomId; lines: number } | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ roomId: RoomId; lines: number }[]>`
        select m.room_id as "roomId", r.shown_events as lines from members m join rooms r using (room_id)
        where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat' and split_part(m.room_id, ':', 1) = ${localpart}
          and (m.room_id = ${here} or may_read(audience_of(${here}, ${owner}), m.room_id, ${owner}))
        order by m.room_id = ${here} desc, m.room_id limit 1`,
    );
    return row;
  }

  /** The newest entries of the agent's ephemeris that may be read here, oldest first. */
  async thoughts({ userId, owner, here }: Seat, count: number): Promise<Thought[]> {
    const rows = await this.#database.run(
      (sql) => sql<Thought[]>`
        select entry, taint, sources || room_id::text as sources
        from (select * from ephemeris where user_id = ${userId} and sub_agent is null order by id desc limit 500) recent
        where may_show((select audience_of(${here}, ${owner})), ${here}, sources || room_id::text, ${owner}, place)
        order by id desc limit ${count}`,
    );
    return rows.reverse();
  }

  /** These lines, oldest first; of the conversation's own room, nothing that waits for a later turn. */
  lines({ agent, userId, owner, here }: Seat, { roomId, bottom, count }: Lines): Promise<StoredEvent[]> {
    return this.#database.run(
      (sql) => sql<StoredEvent[]>`
        with page as (
          select * from events where room_id = ${roomId} and shown order by position desc
          limit ${count} offset greatest(0, (select shown_events from rooms where room_id = ${roomId}) - ${bottom})
        )
        select ${sql.unsafe(eventColumns)} from page e
        where e.redacted_at is null and not is_unseen((select audience_of(${here}, ${owner})), ${roomId}, e.position)
          and (${roomId} = ${here} or may_read(audience_of(${here}, ${owner}), ${roomId}, ${owner}))
          and (${roomId} <> ${here} or e.sender = ${userId} or e.position < (
            select coalesce(min(position), 'infinity') from wakes where agent = ${agent} and room_id = ${here} and turn_id is null))
        order by e.position`,
    );
  }
}
