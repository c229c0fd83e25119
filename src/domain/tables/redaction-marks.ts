import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId } from "../../base/lib/ids.ts";
import { dropSummaries } from "./log-summary.ts";
import {
  commandPieces,
  operationPieces,
  type Piece,
  type PieceKind,
  piecesAround,
  type Whereabouts,
} from "./pieces.ts";
import { takenBack } from "./redact-event.ts";

/** A redaction whose words are still to be blanked where agents have repeated them. */
export interface RedactionMark {
  /** The event that was redacted; or a name for memories of agents' own that were forgotten. */
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
  readonly isOpen: boolean;
}

/** Time after which a mark is free again: its worker has died, or is slow. Two may work on one. */
const lease = "30 seconds";
/** Time after which no statement is left that did not see the redaction, and no turn can still begin from its rows. */
const settling = "1 minute";
/** Limit of turns that are searched, the newest. */
const witnessesMost = 10_000;

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

  /**
   * Adds places in which the words were found, and rooms in which memories with them were recalled over every wall:
   * everybody who was shown something from there may have read them. Returns all places.
   */
  async spread(mark: RedactionMark, found: readonly RoomId[]): Promise<readonly RoomId[]> {
    const [row] = await this.#database.run(
      (sql) => sql<Pick<RedactionMark, "places">[]>`
        update redactions r set places = places || array(
          select place from (
            select unnest(${[...found]}::text[]) as place
            union select room_id from shareable_recalls where interaction_id = any (r.memories)) reached
          where place <> all (r.places))
        where event_id = ${mark.eventId} returning places`,
    );
    return row?.places ?? [...new Set([...mark.places, ...found])];
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
          returning event_id, memories
        ), untraced as (
          delete from shareable_recalls s using settled where s.interaction_id = any (settled.memories)
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
            t.room_id = any (array_remove(r.places, '')) or (t.sources || t.former_sources) && array_remove(r.places, '')
            or ('' = any (r.places) and '' = any (t.sources || t.former_sources || t.room_id) and t.agent in (
              select name from agents join members using (user_id) where members.room_id = any (r.places)))
            or t.chain = ${eventId}
            or t.id in (select turn_id from renders where event_ids && array[${eventId}]))
          union
          select w.turn_id from saw, lateral (select key from operations where turn_id = saw.id offset 0) o,
            lateral (select turn_id from wakes where key = o.key and turn_id is not null offset 0) w
        )
        select id, agent, room_id as "roomId", ended_at is null as "isOpen" from turns where id in (select id from saw)
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
        ${commandPieces(sql)} where c.key in (select key from operations where turn_id = any (${ids}::text[]::bigint[]))
        union all select 'steps', turn_id || '.' || n, jsonb_build_object('result', result) from steps
        where turn_id = any (${ids}::text[]::bigint[]) and result is not null
          and exists (select 1 from turns where id = turn_id and ended_at is not null)
        union all select 'interactions', id::text, jsonb_build_object('text', text) from interactions
        where turn_id = any (${ids}::text[]::bigint[])
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

  /** See there. */
  piecesAround(mark: RedactionMark, whereabouts: Whereabouts): Promise<Piece[]> {
    return piecesAround(this.#database, mark, whereabouts);
  }

  /** Writes the blanked texts into their rows; removes windows, knowledge, memories, and copies of sent messages. */
  async blank({ eventId }: RedactionMark, pieces: readonly Piece[]): Promise<void> {
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
        ), commanded as (
          update sandbox_commands s set command = coalesce(c.command, s.command), outcome = coalesce(c.outcome, s.outcome)
          from jsonb_to_recordset(${of(sql, "commands")}) as c(id text, command text, outcome jsonb)
          where s.key = c.id
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
        ), unoffered as (
          delete from knowledge_offers where key = any (${ids("offers")}::text[])
        ), forgotten as (
          delete from interactions where id = any (${ids("interactions")}::text[]::bigint[])
            or event_id = any (${ids("events", "thoughts")}::text[])
          returning id, shareable
        ), unshared as (
          update redactions set memories = memories || array(select id from forgotten where shareable) where event_id = ${eventId}
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

  /**
   * Empties renders of these turns, which may hold words that were blanked since: the turns get a new render. Drops the
   * summaries of their agents' logs that may have been made from these places.
   */
  async emptyRenders(turnIds: readonly number[], places: readonly RoomId[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with unsummarised as (
          ${dropSummaries(
            sql,
            sql`c.agent in (select agent from turns where id = any (${turnIds.map(String)}::text[]::bigint[]))
              and (c.room_id = any (${[...places]}::text[]) or c.log->'summary'->'sources' ?| ${[...places]}::text[]
                or c.log->'prepared'->'summary'->'sources' ?| ${[...places]}::text[])`,
          )}
        )
        update renders set system = '', prompt = '' where turn_id = any (${turnIds.map(String)}::text[]::bigint[]) and system <> ''`,
    );
  }
}
