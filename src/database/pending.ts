import type { RoomId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";
import { eventColumns, type PendingEvent } from "./events.ts";
import { contextColumns, type RoomContext } from "./rooms.ts";

/** A room's events that wait to be routed, in order of arrival; the first with what is known of the room before it. */
export const pendingIn = (
  database: Database,
  roomId: RoomId,
  limit = 100,
): Promise<(PendingEvent & { readonly room: RoomContext | null })[]> =>
  database.run(
    (sql) => sql`
      with pending as (
        select ${sql.unsafe(eventColumns)}, exists (
          select 1 from events later where later.replaces = e.event_id or later.redacts = e.event_id) as overtaken
        from events e
        where e.room_id = ${roomId} and e.routed_at is null order by e.seq limit ${limit}
      )
      select pending.*, case when row_number() over (order by seq) = 1 then (
        select to_jsonb(context) from (select ${contextColumns(sql, roomId)}) context) end as room
      from pending order by seq`,
  );
