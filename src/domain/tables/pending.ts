import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import { sessionLives } from "../../adapters/database/shards.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { Events, eventColumns, type IncomingEvent, insertEvents, type PendingEvent } from "./events.ts";
import { contextColumns, type RoomContext } from "./room-context.ts";

/** An event that waits to be routed; the first of its room with what is known of the room before it. */
export type Waiting = PendingEvent & { readonly room: RoomContext | null };

/** A room in which something may wait. */
export interface Fresh {
  readonly roomId: RoomId;
  /** All that waits in it, in order; undefined where that may be other than what was just stored. */
  readonly waiting?: readonly Waiting[];
}

/** Columns of a `Waiting`, for rows `e` of events. */
const waitingColumns = (sql: Sql, overtaken: Fragment) => sql`
  ${sql.unsafe(eventColumns)}, ${overtaken} as "isOvertaken",
  case when row_number() over (partition by e.room_id order by e.position, e.seq) = 1 then (
    select to_jsonb(context) from (select ${contextColumns(sql, sql`e.room_id`)}) context) end as room`;

const isChangedIn = (sql: Sql, table: string) =>
  sql`exists (select 1 from ${sql(table)} later where later.replaces = e.event_id or later.redacts = e.event_id)`;

/** A room's events that wait to be routed, by their places in history, but for those that are given as being routed. */
export const pendingIn = (
  database: Database,
  roomId: RoomId,
  limit = 100,
  underWay: readonly number[] = [],
): Promise<Waiting[]> =>
  database.run(
    (sql) => sql<Waiting[]>`
      select ${waitingColumns(sql, isChangedIn(sql, "events"))}
      from (select * from events where room_id = ${roomId} and routed_at is null
        and seq::text <> all (${underWay.map(String)}::text[]) order by seq limit ${limit}) e
      order by e.position, e.seq`,
  );

/** Begins a command for a session; false where it is done, or another session that lives carries it out. */
export async function beginCommand(database: Database, seq: number, session: string): Promise<boolean> {
  const rows = await database.run(
    (sql) => sql`
      update events set runner = ${session}
      where seq = ${seq} and routed_at is null
        and (runner is null or runner = ${session} or not ${sessionLives(sql, "events.runner")})
      returning seq`,
  );
  return rows.length > 0;
}

/** Lets go of commands that this session has begun and not carried out: whoever has their rooms begins them again. */
export async function leaveCommands(database: Database, seqs: readonly number[], session: string): Promise<void> {
  await database.run(
    (sql) => sql`
      update events set runner = null where seq = any (${seqs.map(String)}::text[]::bigint[]) and runner = ${session}`,
  );
}

/** Of more events, to store them and to read them back takes less time. */
const fewEvents = 5;

/**
 * Stores what is new among pushed events, in the order given, in one statement. A few are handed back as they wait.
 * The rooms of all are named: what is known already may be so by this very statement, whose answer was lost.
 */
export async function storePushed(database: Database, events: readonly IncomingEvent[]): Promise<Fresh[]> {
  const rooms = [...new Set(events.map(({ roomId }) => roomId))];
  if (events.length > fewEvents) {
    await new Events(database).store(events, "push");
    return rooms.map((roomId) => ({ roomId }));
  }
  if (events.length === 0) return [];
  // A statement does not see its own new rows in the table. With `exists`, all that waits would be read.
  const rows = await database.run(
    (sql) => sql<(Waiting & { isBehind: true | null })[]>`
      with stored as (${insertEvents(sql, events, "push")} returning *)
      select ${waitingColumns(sql, sql`(${isChangedIn(sql, "events")} or ${isChangedIn(sql, "stored")})`)},
        (select true from events older where older.room_id = e.room_id and older.routed_at is null limit 1) as "isBehind"
      from stored e order by e.seq`,
  );
  const stored = Map.groupBy(rows, ({ roomId }) => roomId);
  return rooms.map((roomId) => {
    const waiting = stored.get(roomId);
    if (!waiting || waiting[0]?.isBehind) return { roomId };
    return { roomId, waiting: waiting.map(({ isBehind: _, ...event }) => event) };
  });
}
