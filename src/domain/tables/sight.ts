import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Fingerprint } from "../../base/lib/repeats.ts";
import { eventColumns, type StoredEvent } from "./events.ts";
import { KnownRows, type Versioned } from "./row-cache.ts";
import type { LogState } from "./steps.ts";
import { type Todo, todosShown } from "./todos.ts";
import { type DeskItem, type DeskRows, deskItems, deskOf, type Reading, type Seat } from "./windows.ts";

/** Who looks, and how much of it is taken. */
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
  readonly membersPerRoom: number;
  readonly entries: number;
  /** The conversation is shown a log: of each room nothing is read that it does not show any more. */
  readonly logged: boolean;
  /** The step whose render this turn's further steps are appended to. */
  readonly base: number | undefined;
  /** Files that are read beside those on the desk. */
  readonly reading: Reading;
}

export interface RoomRow {
  readonly roomId: RoomId;
  /** Null where it has none, and where it may not be read. */
  readonly name: string | null;
  /** Who has set it. */
  readonly namedBy: UserId | null;
  readonly direct: boolean;
  readonly readable: boolean;
  readonly unread: number;
  readonly seenPosition: number;
  readonly shownEvents: number;
  readonly shownChars: number;
  /** How many rooms there are in all. */
  readonly total: number;
}

interface MemberRow {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly displayName: string | null;
  readonly total: number;
}

export interface SeenEvent extends StoredEvent {
  /** By the database's clock. */
  readonly receivedAt: Date;
}

/** An entry of the ephemeris: one LMML element. */
export interface EntryRow {
  readonly id: number;
  readonly entry: string;
  readonly at: Date;
  /** Untrusted texts that its turn had read. */
  readonly taint: readonly string[];
}

export interface Seen {
  /** Those who see what is said here, as `audience_of` names them. */
  readonly audience: readonly UserId[];
  /** The conversation's own room first, then the others by their last activity. */
  readonly rooms: readonly RoomRow[];
  /** The newest events of each room that may be read, oldest first. */
  readonly events: readonly SeenEvent[];
  /** Joined members of each room that may be read. */
  readonly members: readonly MemberRow[];
  /** Entries from other turns, oldest first; none whose sources the audience may not read. */
  readonly ephemeris: readonly EntryRow[];
  /** Number of such entries, also of those before the first that is taken; no further back than is searched. */
  readonly ephemerisLines: number;
  readonly todos: readonly Todo[];
  /** Untrusted texts that turns had read in which the agent said what is among the events. */
  readonly ownTaint: readonly string[];
  readonly log: LogState | null;
  /** When the conversation's turn before this one began. */
  readonly lastTurnAt: Date | null;
  /** See `Rooms.mode`. */
  readonly mode: string | null;
  /** Something that was shown since the step `base` was redacted. */
  readonly emptied: boolean;
  /** How often messages that the turn works on were edited or redacted since it began. */
  readonly changes: number;
  /** Words that were redacted since the turn began: it may remember them. */
  readonly redacted: readonly Fingerprint[];
  readonly desk: DeskRows;
}

/** Characters of events, and of entries of the ephemeris, that stay in memory. */
const eventCharsKept = 4_000_000;
const entryCharsKept = 2_000_000;
/** Size of a row beside its text, about. */
const rowChars = 300;
/** Entries of the ephemeris among which those are sought that may be read. */
const entriesSearched = 500;

type Row = Omit<Seen, "events" | "ephemeris" | "desk"> & {
  readonly eventIds: readonly number[];
  readonly newEvents: readonly Versioned<SeenEvent>[];
  readonly entryIds: readonly number[];
  readonly newEntries: readonly Versioned<EntryRow>[];
  readonly desk: readonly DeskItem[];
};

/** Reads what conversations may see. */
export class Sights {
  readonly #database: Database;
  readonly #events = new KnownRows<SeenEvent>(
    eventCharsKept,
    ({ content }) => rowChars + JSON.stringify(content).length,
  );
  readonly #entries = new KnownRows<EntryRow>(entryCharsKept, ({ entry }) => rowChars + entry.length);

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Reads what a conversation may see, in one statement: walls are checked in it, before anything is taken, against
   * the audience of that moment; and an event that comes meanwhile is either waiting for a later turn or not there yet.
   * Of the conversation's own room nothing is seen from the first event on that waits, except what the agent said.
   * An event or an entry that has not changed since it was read before is the same object.
   */
  async see(look: Look): Promise<Seen> {
    const reader = `${look.agent} ${look.here}`;
    const events = this.#events.of(reader);
    const entries = this.#entries.of(reader);
    const row = await this.#read(look, events.versions, entries.versions);
    const { eventIds, newEvents, entryIds, newEntries, desk, ...seen } = row;
    const sentEvents = newEvents.map((sent) => ({ ...sent, row: withDates(sent.row) }));
    const sentEntries = newEntries.map((sent) => ({ ...sent, row: { ...sent.row, at: new Date(sent.row.at) } }));
    return {
      ...seen,
      events: this.#events.give(reader, events, eventIds, sentEvents),
      ephemeris: this.#entries.give(reader, entries, entryIds, sentEntries),
      desk: deskOf(desk),
    };
  }

  /** `events` and `entries` are known: versions by their ids. */
  async #read(look: Look, events: Readonly<Record<string, string>>, entries: Readonly<Record<string, string>>) {
    const { agent, userId, owner, here } = look;
    const [row] = await this.#database.run(
      (sql) => sql<Row[]>`
      with present as materialized (
        select audience_of(${here}, ${owner}) as audience
      ), mine as (
        select m.room_id, m.direct, r.shown_events, r.shown_chars, r.last_shown_at, count(*) over () as total,
          coalesce(c.seen_position, 0) as seen
        from members m join rooms r using (room_id)
          left join conversations c on c.agent = ${agent} and c.room_id = m.room_id
        where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat'
        order by m.room_id = ${here} desc, r.last_shown_at desc nulls last, m.room_id
        limit ${look.rooms}
      ), known as (
        select mine.*, room_id = ${here} or may_read((select audience from present), room_id, ${owner}) as readable from mine
      ), remembered as (
        select log from conversations where agent = ${agent} and room_id = ${here} and ${look.logged}
      ), waiting as (
        select coalesce(min(position), 'infinity') as first from wakes
        where agent = ${agent} and room_id = ${here} and turn_id is null
      ), visible as (
        select room_id, history_floor((select audience from present), room_id) as floor,
          coalesce(((select log from remembered)->'from'->>room_id)::float8, '-infinity') as beginning
        from known where readable
      ), unseen as materialized (
        select room_id, since, until from known cross join lateral unseen_by((select audience from present), room_id) where readable
      ), newest as (
        select e.* from visible v cross join lateral (
          select seq, xmin::text as version, event_id, room_id, sender, position from events e
          where e.room_id = v.room_id and e.shown and e.redacted_at is null and e.position >= v.floor and e.position > v.beginning
            and not exists (select 1 from unseen u where u.room_id = e.room_id and e.position >= u.since and e.position < u.until)
            and (e.room_id <> ${here} or e.sender = ${userId} or e.position < (select first from waiting))
          order by e.position desc limit ${look.eventsPerRoom}
        ) e
        union
        select e.seq, e.xmin::text, e.event_id, e.room_id, e.sender, e.position
        from visible v join events e on e.room_id = v.room_id
        where e.event_id = any (${[...look.always]}) and e.room_id = ${here} and e.redacted_at is null
          and not exists (select 1 from unseen u where u.room_id = e.room_id and e.position >= u.since and e.position < u.until)
      ), people as (
        select m.* from visible v cross join lateral (
          select room_id, user_id, display_name, kind, count(*) over () as total from members
          where members.room_id = v.room_id and membership = 'join'
          order by user_id = any (${[...look.first]}) desc, kind = 'agent' desc, user_id limit ${look.membersPerRoom}
        ) m
      ), recent as (
        select id, place, sources || room_id as sources from ephemeris
        where user_id = ${userId} and sub_agent is null and turn_id <> ${look.turnId}
          and id > floor(coalesce(((select log from remembered)->'from'->>'ephemeris')::float8, 0))::bigint
          and (${look.since}::timestamptz is null or created_at >= ${look.since})
        order by id desc limit ${entriesSearched}
      ), told as materialized (
        select distinct unnest(sources) as source from recent
      ), open as (
        select array(select source from told
          where source = ${here} or may_read((select audience from present), source, ${owner})) as sources
      ), early as materialized (
        select source, since, until from told cross join lateral unseen_by((select audience from present), source)
      ), thoughts as (
        select id, count(*) over () as total from recent r where sources <@ (select sources from open)
          and not exists (select 1 from early where source = any (r.sources) and r.place >= since and r.place < until)
        order by id desc limit ${look.entries}
      )
      select (select to_json(audience) from present) as audience,
        (select coalesce(json_agg(json_build_object(
          'roomId', room_id, 'direct', direct, 'readable', readable, 'seenPosition', seen, 'total', total,
          'shownEvents', shown_events, 'shownChars', shown_chars,
          'name', naming.name, 'namedBy', naming.sender,
          'unread', (select count(*) from (
            select 1 from events e where e.room_id = known.room_id and e.shown and e.position > known.seen and e.sender <> ${userId}
            limit 1000) u)
        ) order by room_id = ${here} desc, last_shown_at desc nulls last, room_id), '[]')
          from known left join lateral (${roomNaming(sql, sql`known.room_id`)}) naming on known.readable) as rooms,
        (select coalesce(json_agg(seq order by room_id, position), '[]') from newest) as "eventIds",
        (select coalesce(json_agg(json_build_object('id', n.seq, 'version', n.version,
            'row', (select to_json(columns) from (select ${sql.unsafe(eventColumns)}, e.received_at as "receivedAt") columns))), '[]')
          from newest n join events e on e.seq = n.seq
          where ${sql.json(events)}::jsonb->>n.seq::text is distinct from n.version) as "newEvents",
        (select coalesce(json_agg(json_build_object('roomId', room_id, 'userId', user_id, 'displayName', display_name, 'total', total)
          order by user_id = any (${[...look.first]}) desc, kind = 'agent' desc, user_id), '[]') from people) as members,
        (select coalesce(json_agg(id order by id), '[]') from thoughts) as "entryIds",
        (select coalesce(max(total), 0) from thoughts) as "ephemerisLines",
        (select coalesce(json_agg(json_build_object('id', id, 'version', e.xmin::text,
            'row', json_build_object('id', id, 'entry', entry, 'at', created_at, 'taint', taint))), '[]')
          from thoughts join ephemeris e using (id)
          where ${sql.json(entries)}::jsonb->>id::text is distinct from e.xmin::text) as "newEntries",
        ${todosShown(sql, look, sql`(select audience from present)`)} as todos,
        (select coalesce(json_agg(distinct t), '[]') from turns, unnest(taint) t where id in (
          select turn_id from outbox where event_id = any (array(select event_id from newest where sender = ${userId})))) as "ownTaint",
        (select log from remembered) as log,
        (select started_at from turns where agent = ${agent} and room_id = ${here} and id < ${look.turnId}
          order by id desc limit 1) as "lastTurnAt",
        (select mode from rooms where room_id = ${here}) as mode,
        exists (select 1 from renders where turn_id = ${look.turnId} and n >= ${look.base ?? null}::integer and system = '') as emptied,
        coalesce((select changes from turns where id = ${look.turnId}), 0) as changes,
        (select coalesce(json_agg(json_build_object('salt', r.event_id, 'prints', r.prints)), '[]')
          from redactions r, turns t where t.id = ${look.turnId} and r.redacted_at > t.started_at - interval '1 minute'
            and (r.room_id = ${here} or r.room_id = any (t.sources) or r.room_id in (select room_id from visible))) as redacted,
        (select coalesce(json_agg(d), '[]') from (${deskItems(sql, look, look.reading, sql`(select audience from present)`)}) d) as desk`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }
}

/** A query that gives what a room is called, and who has said so; nothing where it has no name. */
const roomNaming = (sql: Sql, roomId: RoomId | Fragment) => sql`
  select coalesce(content->>'name', content->>'alias') as name, sender from room_state
  where room_id = ${roomId} and ((type = 'm.room.name' and content->>'name' <> '')
    or (type = 'm.room.canonical_alias' and content->>'alias' <> ''))
  order by type = 'm.room.name' desc limit 1`;

/** Where somebody works, and for whom. */
export interface Surroundings {
  /** '' where the room has none, and at home. */
  readonly roomName: string;
  /** Who has set it. */
  readonly namedBy: UserId | null;
  readonly people: readonly { readonly userId: UserId; readonly displayName: string | null }[];
}

/** A room's name, and what these people are called in it. */
export async function surroundings(
  database: Database,
  roomId: RoomId,
  userIds: readonly UserId[],
): Promise<Surroundings> {
  const rows = await database.run(
    (sql) => sql<{ userId: UserId; displayName: string | null; name: string | null; namedBy: UserId | null }[]>`
      select u as "userId", m.display_name as "displayName", naming.name, naming.sender as "namedBy"
      from unnest(${[...userIds]}::text[]) u left join members m on m.room_id = ${roomId} and m.user_id = u
        left join (${roomNaming(sql, roomId)}) naming on true`,
  );
  return {
    roomName: rows[0]?.name ?? "",
    namedBy: rows[0]?.namedBy ?? null,
    people: rows.map(({ userId, displayName }) => ({ userId, displayName })),
  };
}

/** JSON carries times as texts. */
const withDates = (event: SeenEvent): SeenEvent => ({
  ...event,
  sentAt: new Date(event.sentAt),
  receivedAt: new Date(event.receivedAt),
  editedAt: event.editedAt === null ? null : new Date(event.editedAt),
});
