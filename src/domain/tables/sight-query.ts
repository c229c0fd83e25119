import type { Sql } from "../../adapters/database/connection.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import { eventColumns } from "./events.ts";
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
  readonly logged: boolean;
  /** The step whose render this turn's further steps are appended to. */
  readonly base: number | undefined;
  /** Files that are read beside those on the desk. */
  readonly reading: Reading;
}

/** Entries of the ephemeris among which those are sought that may be read. */
const entriesSearched = 500;

/** Versions of the rows that the reader has in memory, by their ids: these are not read again. */
interface KnownVersions {
  readonly events: Readonly<Record<string, string>>;
  readonly entries: Readonly<Record<string, string>>;
}

/**
 * The query by which a conversation sees: one row with a column for each part of `Seen`. Its CTEs decide the walls, in
 * the order in which they need each other; its columns read what is left.
 */
export const sightQuery = (sql: Sql, look: Look, known: KnownVersions) => sql`
  with ${present(sql, look)}, ${joinedRooms(sql, look)}, ${knownRooms(sql, look)}, ${logStart(sql, look)},
    ${waitingFrom(sql, look)}, ${visibleRooms(sql)}, ${unseenStretches(sql)}, ${newestEvents(sql, look)},
    ${shownMembers(sql, look)}, ${recentEntries(sql, look)}, ${openSources(sql, look)}, ${readableEntries(sql, look)}
  select (select to_json(audience) from present) as audience,
    ${roomsColumn(sql, look)} as rooms,
    (select coalesce(json_agg(seq order by room_id, position), '[]') from newest) as "eventIds",
    ${newEventsColumn(sql, known)} as "newEvents",
    ${membersColumn(sql, look)} as members,
    (select coalesce(json_agg(id order by id), '[]') from thoughts) as "entryIds",
    (select coalesce(max(total), 0) from thoughts) as "ephemerisLines",
    ${newEntriesColumn(sql, known)} as "newEntries",
    ${selectShownTodos(sql, look, audienceNow(sql))} as todos,
    ${ownTaintColumn(sql, look)} as "ownTaint",
    (select log from remembered) as log,
    ${lastTurnColumn(sql, look)} as "lastTurnAt",
    (select mode from rooms where room_id = ${look.here}) as mode,
    ${emptiedColumn(sql, look)} as emptied,
    coalesce((select changes from turns where id = ${look.turnId}), 0) as changes,
    ${redactedColumn(sql, look)} as redacted,
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

/** CTE `remembered`: the log that the conversation was shown last. */
const logStart = (sql: Sql, { agent, here, logged }: Look) => sql`
  remembered as (
    select log from conversations where agent = ${agent} and room_id = ${here} and ${logged}
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

/** Condition on an event `e`: it stands in none of the unseen stretches. */
const isNotUnseen = (sql: Sql) => sql`
  not exists (select 1 from unseen u where u.room_id = e.room_id and e.position >= u.since and e.position < u.until)`;

/** CTE `newest`: the last events of each room, and here those that caused the turn, however old they are. */
const newestEvents = (sql: Sql, { always, eventsAtFirst, eventsPerRoom, here, userId }: Look) => sql`
  newest as (
    select e.* from visible v cross join lateral (
      select seq, xmin::text as version, event_id, room_id, sender, position from events e
      where e.room_id = v.room_id and e.shown and e.redacted_at is null and e.position >= v.floor and e.position > v.beginning
        and ${isNotUnseen(sql)}
        and (e.room_id <> ${here} or e.sender = ${userId} or e.position < (select first from waiting))
      order by e.position desc
      limit case when v.beginning > '-infinity' then ${eventsPerRoom}::integer else ${eventsAtFirst}::integer end
    ) e
    union
    select e.seq, e.xmin::text, e.event_id, e.room_id, e.sender, e.position
    from visible v join events e on e.room_id = v.room_id
    where e.event_id = any (${[...always]}) and e.room_id = ${here} and e.redacted_at is null and ${isNotUnseen(sql)}
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
    select id, xmin::text as version, place, sources || room_id as sources from ephemeris
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
      and not exists (select 1 from early where source = any (r.sources) and r.place >= since and r.place < until)
    order by id desc limit ${entries}
  )`;

/** Rooms in the order of `Seen`; the name of one that may not be read is not told. */
const roomsColumn = (sql: Sql, { here, userId }: Look) => sql`
  (select coalesce(json_agg(json_build_object(
      'roomId', room_id, 'direct', direct, 'readable', readable, 'seenPosition', seen, 'total', total,
      'shownEvents', shown_events, 'shownChars', shown_chars,
      'name', naming.name, 'namedBy', naming.sender,
      'unread', (select count(*) from (
        select 1 from events e where e.room_id = known.room_id and e.shown and e.position > known.seen and e.sender <> ${userId}
        limit 1000) u)
    ) order by room_id = ${here} desc, last_shown_at desc nulls last, room_id), '[]')
    from known left join lateral (${roomNaming(sql, sql`known.room_id`)}) naming on known.readable)`;

/** Numbers, by their ids, of the events to which `e` is an answer or a reaction, or in whose thread it stands. */
const relatedNumbers = (sql: Sql) => sql`(
  select json_object_agg(t.event_id, t.number) from events t
  where t.event_id in (e.content->'m.relates_to'->>'event_id', e.content->'m.relates_to'->'m.in_reply_to'->>'event_id')
    and t.room_id = e.room_id and t.number is not null)`;

/** Events that the reader does not have as they are now. */
const newEventsColumn = (sql: Sql, { events }: KnownVersions) => sql`
  (select coalesce(json_agg(json_build_object('id', n.seq, 'version', n.version,
      'row', (select to_json(columns) from (select ${sql.unsafe(eventColumns)},
        coalesce(e.routed_at, e.received_at) as "shownAt", ${relatedNumbers(sql)} as numbers) columns))), '[]')
    from newest n join events e on e.seq = n.seq
    where ${sql.json(events)}::jsonb->>n.seq::text is distinct from n.version)`;

const membersColumn = (sql: Sql, { first }: Look) => sql`
  (select coalesce(json_agg(json_build_object('roomId', room_id, 'userId', user_id, 'displayName', display_name, 'total', total)
    order by user_id = any (${[...first]}) desc, kind = 'agent' desc, user_id), '[]') from people)`;

/** Entries that the reader does not have as they are now. */
const newEntriesColumn = (sql: Sql, { entries }: KnownVersions) => sql`
  (select coalesce(json_agg(json_build_object('id', id, 'version', version,
      'row', json_build_object('id', id, 'entry', entry, 'at', created_at, 'taint', taint))), '[]')
    from thoughts join ephemeris e using (id)
    where ${sql.json(entries)}::jsonb->>id::text is distinct from version)`;

/** Untrusted texts behind what the agent itself said among the events. */
const ownTaintColumn = (sql: Sql, { userId }: Look) => sql`
  (select coalesce(json_agg(distinct t), '[]') from turns, unnest(taint) t where id in (
    select turn_id from outbox where event_id = any (array(select event_id from newest where sender = ${userId}))))`;

const lastTurnColumn = (sql: Sql, { agent, here, turnId }: Look) => sql`
  (select started_at from turns where agent = ${agent} and room_id = ${here} and id < ${turnId}
    order by id desc limit 1)`;

/** True if a redaction has emptied a render that the turn's further steps go on from. */
const emptiedColumn = (sql: Sql, { turnId, base }: Look) => sql`
  exists (select 1 from renders where turn_id = ${turnId} and n >= ${base ?? null}::integer and system = '')`;

/** Fingerprints of the words that were redacted where the turn looks. */
const redactedColumn = (sql: Sql, { turnId, here }: Look) => sql`
  (select coalesce(json_agg(json_build_object('salt', r.event_id, 'prints', r.prints)), '[]')
    from redactions r, turns t where t.id = ${turnId} and r.redacted_at > t.started_at - interval '1 minute'
      and (${here} = any (r.places) or r.places && (t.sources || array(select room_id from visible))))`;
