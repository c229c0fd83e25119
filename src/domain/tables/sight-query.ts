import type { Fragment, Sql } from "../../adapters/database/connection.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import { eventColumns } from "./events.ts";
import type { FilePlace } from "./files.ts";
import { readableLog } from "./log-summary.ts";
import { ephemerisSource, epochNow, type KnownPages, pageCtes, versionOf } from "./sight-pages.ts";
import { roomNaming } from "./surroundings.ts";
import { selectShownTodos } from "./todos.ts";
import { deskItems, type Reading, type Seat } from "./windows.ts";

/** Seat of the agent that looks, and limits of what is read. */
export interface Look extends Seat {
  readonly turnId: number;
  /** Events that caused the turn: those of the conversation's room are shown however old they are. */
  readonly always: readonly EventId[];
  /** Members that are shown before others. */
  readonly first: readonly UserId[];
  /** Entries of the ephemeris before this are left out; null takes all. */
  readonly since: Date | null;
  readonly rooms: number;
  readonly eventsPerRoom: number;
  /** The most of a room that was not in the conversation's log before. */
  readonly eventsAtFirst: number;
  readonly membersPerRoom: number;
  readonly entries: number;
  /** The conversation is shown a log: of each room nothing is read that it does not show any more. */
  readonly isLogged: boolean;
  /** The step whose render this turn's further steps are appended to. */
  readonly base: number | undefined;
  /** Files that are read beside those on the desk. */
  readonly reading: Reading;
  /** Working files of the conversation, where it keeps any, each with the characters of its end that are read. */
  readonly state?: readonly StatePlace[];
}

/** A working file of which the end is read. */
interface StatePlace extends FilePlace {
  readonly chars: number;
}

/** Entries of the ephemeris among which those are sought that may be read. */
const entriesSearched = 500;

/**
 * The query by which a conversation sees: one row with a column for each part of `Seen`. Its CTEs decide the walls, in
 * the order in which they need each other; its columns read what is left.
 */
export const sightQuery = (sql: Sql, look: Look, known: KnownPages) => sql`
  with ${present(sql, look)}, ${joinedRooms(sql, look)}, ${knownRooms(sql, look)}, ${logStart(sql, look)},
    ${waitingFrom(sql, look)}, ${visibleRooms(sql)}, ${unseenStretches(sql)}, ${newestEvents(sql, look)},
    ${shownMembers(sql, look)}, ${recentEntries(sql, look)}, ${openSources(sql, look)}, ${readableEntries(sql, look)},
    ${pageCtes(sql, known)}
  select (select to_json(audience) from present) as audience,
    ${roomsColumn(sql, look)} as rooms,
    ${epochNow(sql)} as epoch,
    (select coalesce(json_agg(json_build_array(n, page)), '[]') from proven) as proven,
    ${newEventsColumn(sql)} as "newEvents",
    ${membersColumn(sql, look)} as members,
    (select coalesce(max(total), 0) from thoughts) as "ephemerisLines",
    ${newEntriesColumn(sql)} as "newEntries",
    ${entrySourcesColumn(sql)} as "entrySources",
    ${selectShownTodos(sql, look, audienceNow(sql))} as todos,
    (select log from remembered) as log,
    ${lastTurnColumn(sql, look)} as "lastTurnAt",
    (select mode from rooms where room_id = ${look.here}) as mode,
    ${emptiedColumn(sql, look)} as "wasEmptied",
    coalesce((select changes from turns where id = ${look.turnId}), 0) as changes,
    ${redactedColumn(sql, look)} as redacted,
    ${stateColumn(sql, look)} as state,
    exists (select 1 from knowledge where agent = ${look.agent}) as "hasKnowledge",
    (select coalesce(json_agg(d), '[]') from (${deskItems(sql, look, look.reading, audienceNow(sql))}) d) as desk`;

/** CTE `present`: those who see what is said here. Walls are decided for them alone, and once. */
const present = (sql: Sql, { here, owner }: Look) => sql`
  present as materialized (
    select audience_of(${here}, ${owner}) as audience
  )`;

/** The audience, as an expression. */
const audienceNow = (sql: Sql) => sql`(select audience from present)`;

/** CTE `mine`: rooms in which the agent is, this one first, with how far it has seen them. */
const joinedRooms = (sql: Sql, { agent, userId, here, rooms }: Look) => sql`
  mine as (
    select m.room_id, m.direct, r.shown_events, r.shown_chars, r.last_shown_at, count(*) over () as total,
      coalesce(c.seen_position, 0) as seen
    from members m join rooms r using (room_id)
      left join conversations c on c.agent = ${agent} and c.room_id = m.room_id
    where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat'
    order by m.room_id = ${here} desc, r.last_shown_at desc nulls last, m.room_id
    limit ${rooms}
  )`;

/** CTE `known`: these rooms, with the wall around each. */
const knownRooms = (sql: Sql, { here, owner }: Look) => sql`
  known as (
    select mine.*, room_id = ${here} or may_read(${audienceNow(sql)}, room_id, ${owner}) as readable from mine
  )`;

/** CTE `remembered`: the log that the conversation was shown last; its summary only where it may be read. */
const logStart = (sql: Sql, { agent, here, isLogged, owner }: Look) => sql`
  remembered as (
    select ${readableLog(
      sql,
      (summary) => sql`may_show(${audienceNow(sql)}, ${here},
        array(select jsonb_array_elements_text(${summary}->'sources')), ${owner}, (${summary}->>'place')::float8)`,
    )} as log
    from conversations where agent = ${agent} and room_id = ${here} and ${isLogged}
  )`;

/** CTE `waiting`: place of the first event here that waits for a later turn. */
const waitingFrom = (sql: Sql, { agent, here }: Look) => sql`
  waiting as (
    select coalesce(min(position), 'infinity') as first from wakes
    where agent = ${agent} and room_id = ${here} and turn_id is null
  )`;

/** CTE `visible`: rooms that may be read, from where on: their history's floor, and the beginning of the log. */
const visibleRooms = (sql: Sql) => sql`
  visible as (
    select room_id, history_floor(${audienceNow(sql)}, room_id) as floor,
      coalesce(((select log from remembered)->'from'->>room_id)::float8, '-infinity') as beginning
    from known where readable
  )`;

/** CTE `unseen`: stretches of these rooms in which somebody of the audience was away, and may not see what was said. */
const unseenStretches = (sql: Sql) => sql`
  unseen as materialized (
    select room_id, since, until from known cross join lateral unseen_by(${audienceNow(sql)}, room_id) where readable
  )`;

/** Condition on an event `e`: it stands in none of the unseen stretches. They are few, and mostly there are none. */
const isNotUnseen = (sql: Sql) => sql`
  (not exists (select 1 from unseen) or not exists (select 1 from unseen u where u.room_id = e.room_id and e.position >= u.since and e.position < u.until))`;

/**
 * Table of the events with these ids. Planned apart from all other conditions: with the room among them the plan may
 * read all of its events.
 */
const eventsNamed = (sql: Sql, ids: Fragment) => sql`(select *, xmin from events where event_id = ${ids} offset 0)`;

/** CTEs `latest` and `newest`: the last events of each room, and here those that caused the turn, however old they are. */
const newestEvents = (sql: Sql, { always, eventsAtFirst, eventsPerRoom, here, userId }: Look) => sql`
  latest as materialized (
    select e.* from visible v cross join lateral (
      select seq, ${versionOf(sql, "e", "seq")} as version, room_id, position from events e
      where e.room_id = v.room_id and e.shown and e.redacted_at is null and e.position >= v.floor and e.position > v.beginning
        and ${isNotUnseen(sql)}
        and (e.room_id <> ${here} or e.sender = ${userId} or e.position < (select first from waiting))
      order by e.position desc
      limit case when v.beginning > '-infinity' then ${eventsPerRoom}::integer else ${eventsAtFirst}::integer end
    ) e
  ), newest as (
    select * from latest
    union all
    select e.seq, version, e.room_id, e.position
    from visible v join (
      select *, ${versionOf(sql, "events", "seq")} as version from ${eventsNamed(sql, sql`any (${[...always]}::text[])`)} events
    ) e using (room_id)
    where e.room_id = ${here} and e.redacted_at is null and ${isNotUnseen(sql)} and e.seq not in (select seq from latest)
  )`;

/** CTE `people`: members of each visible room, those first who are to be shown before others. */
const shownMembers = (sql: Sql, { first, membersPerRoom }: Look) => sql`
  people as (
    select m.* from visible v cross join lateral (
      select room_id, user_id, display_name, kind, count(*) over () as total from members
      where members.room_id = v.room_id and membership = 'join'
      order by user_id = any (${[...first]}) desc, kind = 'agent' desc, user_id limit ${membersPerRoom}
    ) m
  )`;

/** CTE `recent`: what the agent remembers of other turns, from the beginning of the log on. */
const recentEntries = (sql: Sql, { userId, turnId, since }: Look) => sql`
  recent as (
    select id, ${versionOf(sql, "ephemeris", "id")} as version, place, sources || room_id as sources from ephemeris
    where user_id = ${userId} and sub_agent is null and turn_id <> ${turnId}
      and id > floor(coalesce(((select log from remembered)->'from'->>'ephemeris')::float8, 0))::bigint
      and (${since}::timestamptz is null or created_at >= ${since})
    order by id desc limit ${entriesSearched}
  )`;

/** CTEs `told`, `open` and `early`: the sources of these entries, which of them may be read, and which stretches may not. */
const openSources = (sql: Sql, { here, owner }: Look) => sql`
  told as materialized (
    select distinct unnest(sources) as source from (select distinct sources from recent) lists
  ), open as (
    select array(select source from told
      where source = ${here} or may_read(${audienceNow(sql)}, source, ${owner})) as sources
  ), early as materialized (
    select source, since, until from told cross join lateral unseen_by(${audienceNow(sql)}, source)
  )`;

/** CTE `thoughts`: the last entries all of whose sources may be read, as of the time at which they were made. */
const readableEntries = (sql: Sql, { entries }: Look) => sql`
  thoughts as (
    select id, version, count(*) over () as total from recent r where sources <@ (select sources from open)
      and (not exists (select 1 from early) or not exists (select 1 from early where source = any (r.sources) and r.place >= since and r.place < until))
    order by id desc limit ${entries}
  )`;

/** Rooms in the order of `Seen`; the name of one that may not be read is not told. */
const roomsColumn = (sql: Sql, { here, userId }: Look) => sql`
  (select coalesce(json_agg(json_build_object(
      'roomId', room_id, 'isDirect', direct, 'isReadable', readable, 'seenPosition', seen, 'total', total,
      'shownEvents', shown_events, 'shownChars', shown_chars,
      'name', naming.name, 'namedBy', naming.sender,
      'unread', (select count(*) from (
        select 1 from events e where e.room_id = known.room_id and e.shown and e.position > known.seen and e.sender <> ${userId}
        order by e.position limit 1000) u)
    ) order by room_id = ${here} desc, last_shown_at desc nulls last, room_id), '[]')
    from known left join lateral (${roomNaming(sql, sql`known.room_id`)}) naming on known.readable)`;

/** Ids of the events to which `e` is an answer or a reaction, or in whose thread it stands. */
const relatedTo = (sql: Sql) => sql`array_remove(array[
  e.content->'m.relates_to'->>'event_id', e.content->'m.relates_to'->'m.in_reply_to'->>'event_id'], null)`;

/** Query that gives these events, as far as they have a number. */
const relatedEvents = (sql: Sql) => sql`
  select t.event_id, t.number from ${eventsNamed(sql, sql`any (${relatedTo(sql)})`)} t
  where t.room_id = e.room_id and t.number is not null`;

/** True of an event `e` if one of them is not there, or has no number: it may get one. */
const isUnrelated = (sql: Sql) => sql`
  (select count(*) from (${relatedEvents(sql)}) r) < (select count(distinct id) from unnest(${relatedTo(sql)}) id)`;

/** Query that gives the turns in which an event `e` was said, by the row of the outbox that became it or will be said to have. */
const saidIn = (sql: Sql) => sql`
  select t.taint, t.ended_at, o.event_id from (
    select event_id, turn_id from outbox where event_id = e.event_id
    union all
    select event_id, turn_id from outbox where key = e.content->>'org.clevernet.key' and state = 'pending' and event_id is null
  ) o left join turns t on t.id = o.turn_id`;

/** Events that the reader does not have as they are now. One `isOpen` if it may get to be shown otherwise and stay the same row. */
const newEventsColumn = (sql: Sql) => sql`
  (select coalesce(json_agg(json_build_object('id', n.id, 'source', n.source, 'place', n.place, 'version', n.version,
      'isOpen', ${isUnrelated(sql)} or exists (
        select 1 from (${saidIn(sql)}) said where said.event_id is null or (said.taint is not null and said.ended_at is null)),
      'row', (select to_json(columns) from (select ${sql.unsafe(eventColumns)},
        coalesce(e.routed_at, e.received_at) as "shownAt", (select json_object_agg(event_id, number) from (${relatedEvents(sql)}) r) as numbers,
        array(select distinct unnest(taint) from (${saidIn(sql)}) said where said.event_id is not null order by 1) as "turnTaint"
        ) columns))), '[]')
    from unknown n join events e on e.seq = n.id where n.source <> ${ephemerisSource})`;

const membersColumn = (sql: Sql, { first }: Look) => sql`
  (select coalesce(json_agg(json_build_object('roomId', room_id, 'userId', user_id, 'displayName', display_name, 'total', total)
    order by user_id = any (${[...first]}) desc, kind = 'agent' desc, user_id), '[]') from people)`;

/** Entries that the reader does not have as they are now. */
const newEntriesColumn = (sql: Sql) => sql`
  (select coalesce(json_agg(json_build_object('id', n.id, 'source', source, 'place', n.place, 'version', version, 'isOpen', false,
      'row', json_build_object('id', n.id, 'entry', entry, 'at', created_at, 'taint', taint))), '[]')
    from unknown n join ephemeris e on e.id = n.id where source = ${ephemerisSource})`;

/** Sources of all entries that are shown. */
const entrySourcesColumn = (sql: Sql) => sql`
  (select coalesce(json_agg(distinct source), '[]') from thoughts join recent using (id), unnest(sources) source)`;

const lastTurnColumn = (sql: Sql, { agent, here, turnId }: Look) => sql`
  (select started_at from turns where agent = ${agent} and room_id = ${here} and id < ${turnId}
    order by id desc limit 1)`;

/** Ends of the working files that everybody who is here may read. */
const stateColumn = (sql: Sql, { state = [] }: Look) =>
  state.length === 0
    ? sql`'[]'::json`
    : sql`(
  select coalesce(json_agg(json_build_object('share', f.share, 'path', f.path, 'text', right(f.text_content, k.chars), 'chars', length(f.text_content),
      'size', f.size, 'isTainted', f.tainted, 'sources', f.sources)), '[]')
  from unnest(${state.map(({ share }) => share)}::text[], ${state.map(({ path }) => path)}::text[], ${state.map(({ chars }) => String(chars))}::text[]::integer[])
      as k(share, path, chars)
    join files f on f.share = k.share and f.path = k.path
  where f.text_content is not null and not came_too_early(${audienceNow(sql)}, f.share, f.path))`;

/** True if a redaction has emptied a render that the turn's further steps go on from. */
const emptiedColumn = (sql: Sql, { turnId, base }: Look) => sql`
  exists (select 1 from renders where turn_id = ${turnId} and n >= ${base ?? null}::integer and system = '')`;

/** Fingerprints of the words that were redacted where the turn looks. */
const redactedColumn = (sql: Sql, { turnId, here }: Look) => sql`
  (select coalesce(json_agg(json_build_object('salt', r.event_id, 'prints', r.prints)), '[]')
    from redactions r, turns t where t.id = ${turnId} and r.redacted_at > t.started_at - interval '1 minute'
      and (${here} = any (r.places) or r.places && (t.sources || array(select room_id from visible))))`;
