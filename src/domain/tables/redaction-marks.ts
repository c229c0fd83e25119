import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId } from "../../base/lib/ids.ts";
import { takenBack } from "./redact-event.ts";

/** A redaction whose words are still to be blanked where agents have repeated them. */
export interface RedactionMark {
  /** The event that was redacted. */
  readonly eventId: EventId;
  /** Sources with the words: its room, then places where agents have repeated it; '' is the home of agents in these rooms. */
  readonly places: readonly RoomId[];
  /** Fingerprints of its words; the event's id is their salt. */
  readonly prints: readonly string[];
}

/** A turn that may have seen a redacted event. */
export interface Witness {
  readonly id: number;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  /** True if it can still write what it remembers. */
  readonly open: boolean;
}

type PieceKind =
  | "ephemeris"
  | "operations"
  | "steps"
  | "wakes"
  | "todos"
  | "schedules"
  | "queries"
  | "windows"
  | "knowledge"
  | "events"
  | "attachments"
  | "thoughts";

/** A row that agents have made, with those of its texts that may repeat something. */
export interface Piece {
  readonly kind: PieceKind;
  readonly id: string;
  readonly texts: Readonly<Record<string, Json>>;
}

/** Agents and rooms whose rows are searched, beside the rows of turns. */
export interface Whereabouts {
  readonly agents: readonly AgentName[];
  readonly rooms: readonly RoomId[];
}

/** Time after which a mark is free again: its worker has died, or is slow. Two may work on one. */
const lease = "30 seconds";
/** Time after which no statement is left that did not see the redaction, and no turn can still begin from its rows. */
const settling = "1 minute";
/** Limit of turns that are searched, the newest. */
const witnessesMost = 10_000;
const eventsMost = 5_000;

/** Marks of redactions, from the redaction until no turn remembers its words, and the rows in which they may be repeated. */
export class RedactionMarks {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Takes the mark that is due longest; nobody else is given it meanwhile. */
  async take(): Promise<RedactionMark | undefined> {
    const [mark] = await this.#database.run(
      (sql) => sql<RedactionMark[]>`
        update redactions set due_at = now() + ${lease}::interval
        where event_id = (select event_id from redactions where due_at <= now() order by due_at limit 1 for update skip locked)
        returning event_id as "eventId", places, prints`,
    );
    return mark;
  }

  /** Adds places in which the words were found: everybody who was shown something from there may have read them. */
  async spread({ eventId }: RedactionMark, places: readonly RoomId[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update redactions set places = places || array(select p from unnest(${[...places]}::text[]) p where p <> all (places))
        where event_id = ${eventId}`,
    );
  }

  /**
   * Removes a mark that needs no more work. Otherwise it is due again, the later the older it is.
   * @param open turns that were not over at the search
   */
  async putBack({ eventId }: RedactionMark, open: readonly number[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with settled as (
          delete from redactions r where event_id = ${eventId} and redacted_at < now() - ${settling}::interval
            and not exists (select 1 from turns t where t.id = any (${open.map(String)}::text[]::bigint[])
              and t.started_at < r.redacted_at + ${settling}::interval)
          returning event_id
        )
        update redactions set due_at = now() + greatest('5 seconds', least('15 minutes', (now() - redacted_at) / 2))
        where event_id = ${eventId} and not exists (select 1 from settled)`,
    );
  }

  /**
   * Finds turns that may have seen the event, the newest first: turns that ended after it came, and were shown the event or
   * one of its places, or were caused by it; and turns to which one of these told something.
   */
  witnesses({ eventId }: RedactionMark): Promise<Witness[]> {
    return this.#database.run(
      (sql) => sql<Witness[]>`
        with recursive saw as (
          select t.id from redactions r, turns t
          where r.event_id = ${eventId} and (t.ended_at is null or t.ended_at >= r.since) and (
            t.room_id = any (array_remove(r.places, '')) or t.sources && array_remove(r.places, '')
            or ('' = any (r.places) and '' = any (t.sources || t.room_id) and t.agent in (
              select name from agents join members using (user_id) where members.room_id = any (r.places)))
            or t.chain = ${eventId}
            or t.id in (select turn_id from renders where event_ids && array[${eventId}]))
          union
          select w.turn_id from saw, lateral (select key from operations where turn_id = saw.id offset 0) o,
            lateral (select turn_id from wakes where key = o.key and turn_id is not null offset 0) w
        )
        select id, agent, room_id as "roomId", ended_at is null as open from turns where id in (select id from saw)
        order by id desc limit ${witnessesMost}`,
    );
  }

  /** Rows of these turns. The journal of a turn that is open stays as it is: the turn goes on from it. */
  piecesOfTurns(turnIds: readonly number[]): Promise<Piece[]> {
    const ids = turnIds.map(String);
    return this.#database.run(
      (sql) => sql<Piece[]>`
        select 'ephemeris' as kind, id::text, jsonb_build_object('entry', entry) as texts from ephemeris
        where turn_id = any (${ids}::text[]::bigint[])
        union all ${operationPieces(sql)} where turn_id = any (${ids}::text[]::bigint[])
        union all select 'steps', turn_id || '.' || n, jsonb_build_object('result', result) from steps
        where turn_id = any (${ids}::text[]::bigint[]) and result is not null
          and exists (select 1 from turns where id = turn_id and ended_at is not null)
        union all select 'wakes', id::text, jsonb_build_object('note', note) from wakes
        where turn_id = any (${ids}::text[]::bigint[]) and note is not null
        union all select 'wakes', w.id::text, jsonb_build_object('note', note) from operations o join wakes w on w.key = o.key
        where o.turn_id = any (${ids}::text[]::bigint[]) and w.turn_id is null and note is not null`,
    );
  }

  /** Finds rooms in which these turns have spoken, or in which people's commands used something from its places. */
  async heardIn({ eventId }: RedactionMark, turnIds: readonly number[]): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        select distinct o.room_id as "roomId" from redactions r, outbox o
        where r.event_id = ${eventId} and o.created_at >= r.since and o.turn_id = any (${turnIds.map(String)}::text[]::bigint[])
        union
        select o.room_id from redactions r, operations o
        where r.event_id = ${eventId} and o.created_at >= r.since and o.by = 'person' and o.sources && r.places
          and o.agent in (select name from agents join members using (user_id) where members.room_id = any (r.places))`,
    );
    return rows.map(({ roomId }) => roomId);
  }

  /** Finds rows outside of turns, newer than the event, made by somebody who had been shown its places. */
  piecesAround({ eventId }: RedactionMark, { agents, rooms }: Whereabouts): Promise<Piece[]> {
    return this.#database.run(
      (sql) => sql<Piece[]>`
        with mark as materialized (
          select r.*, e.position from redactions r join events e using (event_id) where event_id = ${eventId}
        ), those as materialized (
          select name, user_id, thoughts_room from agents where name = any (${[...agents]}::text[]) or user_id in (
            select user_id from members m, mark where m.room_id = any (mark.places) and m.kind = 'agent')
        ), speakers as (
          select user_id from those union select user_id from members where room_id = any (${[...rooms]}::text[]) and kind = 'bot'
        ), said as (
          select e.* from mark, speakers those, unnest(${[...rooms]}::text[]) room, lateral (
            (select * from events e where e.room_id = room and e.shown and e.position > mark.position and e.sender = those.user_id
              order by e.position desc limit ${eventsMost})
            union all
            (select * from events e where e.room_id = room and not e.shown and e.position > mark.position and e.sender = those.user_id
              order by e.position desc limit ${eventsMost})) e
          where e.redacted_at is null
        ), shown as (
          select e.* from mark, those, lateral (
            select * from events e where e.room_id = those.thoughts_room and not e.shown and e.position > mark.position
              and e.state_key is null and e.content ? 'body'
            order by e.position desc limit ${eventsMost}) e
        )
        ${operationPieces(sql)}, mark where by = 'person' and operations.created_at >= since
          and agent in (select name from those) and (operations.room_id = any (places) or sources && places)
        union all select 'todos', key, jsonb_build_object('name', name) from todos, mark
        where agent in (select name from those) and created_at >= since and (todos.room_id = any (places) or sources && places)
        union all select 'schedules', id::text, jsonb_build_object('text', text) from schedules, mark
        where agent in (select name from those) and created_at >= since
          and (schedules.room_id = any (places) or sources && places)
        union all select 'wakes', id::text, jsonb_build_object('note', note) from wakes, mark
        where agent in (select name from those) and turn_id is null and note is not null
          and (wakes.room_id = any (places) or sources && places)
        union all select 'windows', id::text, jsonb_build_object('title', title, 'src', src, 'arguments', arguments, 'content', content)
        from windows, mark
        where agent in (select name from those) and used_at >= since and (windows.room_id = any (places) or sources && places)
        union all select 'queries', id::text, jsonb_build_object('queries', queries) from windows, mark
        where agent in (select name from those) and used_at >= since and (windows.room_id = any (places) or sources && places)
        union all select 'knowledge', id::text, jsonb_build_object('text', text, 'source', source) from knowledge, mark
        where agent in (select name from those) and created_at >= since and wall = any (${[...rooms]}::text[])
        union all select 'attachments', key, jsonb_build_object('text', content->>'text', 'shows', shows is not null,
          'roomId', outbox.room_id, 'sender', sender) from outbox, mark
        where kind = 'file' and outbox.room_id = any (${[...rooms]}::text[]) and created_at >= since and content->>'text' is not null
        union all select 'events', event_id, jsonb_build_object('content', content, 'roomId', room_id) from said
        union all select 'thoughts', event_id, jsonb_build_object('text', content->'body', 'roomId', room_id, 'sender', sender) from shown`,
    );
  }

  /** Writes the blanked texts into their rows; removes windows, knowledge, and copies of sent messages. */
  async blank(pieces: readonly Piece[]): Promise<void> {
    const of = (sql: Sql, kind: PieceKind) =>
      sql.json(pieces.filter((piece) => piece.kind === kind).map(({ id, texts }) => ({ ...texts, id })) as Json);
    const ids = (...kinds: PieceKind[]) => pieces.filter(({ kind }) => kinds.includes(kind)).map(({ id }) => id);
    await this.#database.run(
      (sql) => sql`
        with entries as (
          update ephemeris e set entry = c.entry from jsonb_to_recordset(${of(sql, "ephemeris")}) as c(id bigint, entry text)
          where e.id = c.id
        ), calls as (
          update operations o set summary = coalesce(c.summary, o.summary), input = coalesce(c.input, o.input),
            result = coalesce(c.result, o.result), error = coalesce(c.error, o.error),
            asked_because = coalesce(c.asked_because, o.asked_because), decided_because = coalesce(c.decided_because, o.decided_because)
          from jsonb_to_recordset(${of(sql, "operations")})
            as c(id bigint, summary text, input jsonb, result text, error text, asked_because text, decided_because text)
          where o.id = c.id
        ), journal as (
          update steps s set result = c.result from jsonb_to_recordset(${of(sql, "steps")}) as c(id text, result jsonb)
          where s.turn_id = split_part(c.id, '.', 1)::bigint and s.n = split_part(c.id, '.', 2)::integer
        ), notes as (
          update wakes w set note = c.note from jsonb_to_recordset(${of(sql, "wakes")}) as c(id bigint, note text) where w.id = c.id
        ), set_out as (
          update todos t set name = c.name from jsonb_to_recordset(${of(sql, "todos")}) as c(id text, name text) where t.key = c.id
        ), planned as (
          update schedules s set text = c.text from jsonb_to_recordset(${of(sql, "schedules")}) as c(id bigint, text text)
          where s.id = c.id
        ), asked as (
          update windows w set queries = c.queries from jsonb_to_recordset(${of(sql, "queries")}) as c(id bigint, queries jsonb)
          where w.id = c.id and w.id <> all (${ids("windows")}::text[]::bigint[])
        ), closed as (
          delete from windows where id = any (${ids("windows")}::text[]::bigint[])
        ), unlearnt as (
          delete from knowledge where id = any (${ids("knowledge")}::text[]::bigint[])
        ), said as (
          update events e set content = c.content, original = null
          from jsonb_to_recordset(${of(sql, "events")}) as c(id text, content jsonb)
          where e.event_id = c.id and e.redacted_at is null
        ), thought as (
          update events set content = '{}' where event_id = any (${ids("thoughts")}::text[])
        )
        update outbox set wire = null,
          content = case when state = 'sent' then '{}' else content || ${sql.json(takenBack)}::jsonb end
        where (key = any (${ids("attachments")}::text[]) and (shows is not null or state = 'sent'))
          or (event_id = any (${ids("events", "thoughts")}::text[]) and state = 'sent')`,
    );
  }

  /** Empties renders of these turns, which may hold words that were blanked since. The turns get a new render. */
  async emptyRenders(turnIds: readonly number[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update renders set system = '', prompt = '' where turn_id = any (${turnIds.map(String)}::text[]::bigint[]) and system <> ''`,
    );
  }
}

/** Part of a statement: operations as pieces; a condition follows. */
const operationPieces = (sql: Sql) => sql`
  select 'operations' as kind, operations.id::text as id, jsonb_build_object('summary', summary, 'input', input, 'result', result,
    'error', error, 'asked_because', asked_because, 'decided_because', decided_because) as texts
  from operations`;
