import type { Sql } from "../../adapters/database/connection.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";

/** A conversation that remembers. */
export interface Rememberer {
  readonly agent: AgentName;
  readonly userId: UserId;
  readonly owner: UserId;
  readonly here: RoomId;
}

/**
 * CTEs that decide the walls of a recall: `readable`, the rooms that everybody who hears the answer may read, and what
 * `isOpen` needs besides.
 */
export const wallCtes = (sql: Sql, who: Rememberer) => sql`
  ${present(sql, who)}, ${joinedRooms(sql, who)}, ${readableRooms(sql, who)}, ${unseenStretches(sql, who)}, ${openSources(sql, who)}`;

/** Condition on an interaction `i`: it stands behind no wall. */
export const isOpen = (sql: Sql, { agent }: Rememberer) => sql`(
  case when i.agent is null
    then i.room_id in (select room_id from readable) and not exists (
      select 1 from (table unseen union all table away) u
      where u.room_id = i.room_id and i.place >= u.since and i.place < u.until)
    else i.agent = ${agent} and (i.shareable or i.sources <@ (select sources from open) and not exists (
      select 1 from unseen u where u.room_id = any (i.sources) and i.place >= u.since and i.place < u.until))
  end)`;

/** CTE `present`: those who see what is said here. */
const present = (sql: Sql, { here, owner }: Rememberer) => sql`
  present as materialized (select audience_of(${here}, ${owner}) as audience)`;

/** Those of the CTE `present`. */
export const audience = (sql: Sql) => sql`(select audience from present)`;

/** CTE `joined`: rooms in which the agent is, and everybody of the audience who is somewhere by name. */
const joinedRooms = (sql: Sql, { here, userId }: Rememberer) => sql`
  joined as materialized (
    select m.room_id from members m join rooms r using (room_id)
    where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat'
      and (m.room_id = ${here} or not exists (
        select 1 from unnest(${audience(sql)}) reader where reader like '@%' and not exists (
          select 1 from members o where o.room_id = m.room_id and o.user_id = reader and o.membership = 'join')))
  )`;

/** CTE `readable`: those of them that the whole audience may read. */
const readableRooms = (sql: Sql, { here, owner }: Rememberer) => sql`
  readable as materialized (
    select room_id from joined where room_id = ${here} or may_read(${audience(sql)}, room_id, ${owner})
  )`;

/** CTEs `unseen` and `away`: stretches of these rooms that somebody of the audience, or the agent, may not see. */
const unseenStretches = (sql: Sql, { userId }: Rememberer) => sql`
  unseen as materialized (
    select room_id, since, until from readable cross join lateral unseen_by(${audience(sql)}, room_id)
  ), away as materialized (
    select room_id, since, until from readable cross join lateral unseen_by(array[${userId}], room_id)
  )`;

/** CTE `open`: sources from which the agent's own memories may be made. */
const openSources = (sql: Sql, { here, owner }: Rememberer) => sql`
  open as materialized (
    select array(select room_id from readable) || ${here}::text
      || case when may_read(${audience(sql)}, '', ${owner}) then array[''] else '{}' end
      || case when cardinality(${audience(sql)}) = 1 then ${audience(sql)} else '{}' end as sources
  )`;
