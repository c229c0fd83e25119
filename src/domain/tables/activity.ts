import type { Sql } from "../../adapters/database/connection.ts";
import { appendLines } from "./append.ts";
import type { FilePlace } from "./files.ts";

/**
 * Part of a statement, behind `recordOperations`: notes in a LOG.md the operations that have ended, a line each. The line
 * has the call in words where nothing but its own room was shown, and no untrusted text: so it is behind no other wall
 * than the file, and does not taint it.
 * @param keys keys of the operations that are noted
 * @param turn table or CTE with the turn: agent, room_id, sources, taint, place. The lines have no other source than its room
 */
export const noteCalls = (sql: Sql, logTo: FilePlace, keys: readonly string[], turn: string) => sql`
  calls as (
    select a.user_id as owner, false as tainted, min(t.place) as place, '{}'::text[] as sources,
      audience_of(t.room_id, a.owner) as audience, string_agg(
      to_char(now() at time zone 'UTC', '[YYYY-MM-DD HH24:MI:SS] ') || 'TOOL_USE ' || r.tool || ' #' || r.operation
        || case when t.taint = '{}' and t.sources <@ array[t.room_id] and r.summary <> '' then ' ' || r.summary else '' end
        || ': ' || r.state || E'\\n', '' order by r.operation) as text
    from ${sql(turn)} t join agents a on a.name = t.agent, recorded r
    where r.key = any (${[...keys]}::text[]) and r.state not in ('asked', 'running')
    group by a.user_id, t.room_id, a.owner
  ), ${appendLines(sql, logTo, "calls")}`;
