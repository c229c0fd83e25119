import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import { eventColumns, type StoredEvent } from "./events.ts";
import { type EventMemory, type Memory, rememberEvents } from "./interactions.ts";

/** A row as it was when it was read. */
interface Read {
  readonly id: number;
  readonly version: string;
  /** True if agents may remember it at all. */
  readonly isKept: boolean;
}

/** An event from before there was a memory. */
export type OldEvent = Read & StoredEvent;

/** An entry of the ephemeris from before there was a memory. */
export interface OldEntry extends Read {
  readonly entry: string;
  /** Name of the step that wrote it; null where there is none. */
  readonly step: string | null;
  /** Of the names by which its agent calls tools. */
  readonly suffix: string;
}

/** Memory of an entry. */
interface OldMemory {
  readonly id: number;
  readonly memory: Memory;
}

/** Rows that are taken over at once. */
const rowsAtOnce = 200;
/** Interactions whose words are counted at once. */
const countedAtOnce = 1_000;

/** Work on the memory that nobody waits for: takes over what was there before it, and counts words. */
export class MemoryUpkeep {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the next events that are to be taken over, the newest first; none where all of them are. */
  oldEvents(): Promise<OldEvent[]> {
    return this.#database.run(
      (sql) => sql<OldEvent[]>`
        select e.seq as id, e.xmin::text as version, ${sql.unsafe(eventColumns)},
          exists (select 1 from rooms r where r.room_id = e.room_id and r.kind = 'chat') as "isKept"
        from memory_takeover t, lateral (
          select xmin, * from events where shown and redacted_at is null and seq < t.below order by seq desc limit ${rowsAtOnce}
        ) e
        where t.source = 'events'`,
    );
  }

  /** Keeps what is remembered of these events. Nothing is changed if one of them has changed since. */
  async takeEvents(events: readonly OldEvent[], memories: readonly EventMemory[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with ${unchanged(sql, events, sql`select seq as id, xmin::text as version from events`)},
          ${rememberEvents(sql, memories, "unchanged")}, ${moved(sql, "events", events)}
        select 1`,
    );
  }

  /** Reads the next entries of agents' own, like `oldEvents`. */
  oldEntries(): Promise<OldEntry[]> {
    return this.#database.run(
      (sql) => sql<OldEntry[]>`
        select e.id, e.xmin::text as version, e.entry, s.name as step, coalesce(a.suffix, '') as suffix,
          a.name is not null and e.sub_agent is null as "isKept"
        from memory_takeover t, lateral (
          select xmin, * from ephemeris where id < t.below order by id desc limit ${rowsAtOnce}
        ) e left join agents a on a.user_id = e.user_id left join steps s on s.turn_id = e.turn_id and s.n = e.n
        where t.source = 'ephemeris'`,
    );
  }

  /** Keeps what is remembered of these entries, like `takeEvents`. */
  async takeEntries(entries: readonly OldEntry[], memories: readonly OldMemory[]): Promise<void> {
    const kept = memories.map(({ id, memory }) => ({ ...memory, id }));
    await this.#database.run(
      (sql) => sql`
        with ${unchanged(sql, entries, sql`select id, xmin::text as version from ephemeris`)}, remembered as (
          insert into interactions (kind, agent, room_id, turn_id, n, part, tool, sender, at, place, sources, speaker, text,
            importance, requester, taint)
          select m.kind, a.name, e.room_id, e.turn_id, e.n, e.part, m.tool, e.user_id, e.created_at, e.place,
            array(select distinct unnest(e.sources || e.room_id)), speaker, speaker || ': ' || m.text, m.importance,
            t.requesters[1], e.taint
          from unchanged, jsonb_to_recordset(${sql.json(kept as unknown as Json)})
              as m(id bigint, kind text, tool text, text text, importance real)
            join ephemeris e on e.id = m.id join agents a on a.user_id = e.user_id left join turns t on t.id = e.turn_id,
            speaker_of(e.room_id, e.user_id) as speaker
          on conflict do nothing
          returning id
        ), remembered_later as (
          insert into interactions_to_embed select id from remembered on conflict do nothing
        ), ${moved(sql, "ephemeris", entries)}
        select 1`,
    );
  }

  /**
   * Counts the words of interactions that are not counted yet; returns whether there may be more. One that is written at
   * the same time may be left out: the counts are there to tell rare words from common ones.
   */
  async countWords(): Promise<boolean> {
    const [next] = await this.#database.run(
      (sql) => sql<{ from: number; to: number | null; count: number }[]>`
        select counted_to as from, max(id) as to, count(id)::int as count from word_counting, lateral (
          select id from interactions where id > counted_to order by id limit ${countedAtOnce}) i
        group by counted_to`,
    );
    if (!next?.to) return false;
    const { from, to, count } = next;
    const rows = `select words from interactions where id > ${Number(from)} and id <= ${Number(to)}`;
    await this.#database.run(
      (sql) => sql`
        with mine as (
          update word_counting set counted_to = ${to}, interactions = interactions + ${count}
          where counted_to = ${from} returning 1
        )
        insert into word_counts (word, interactions)
        select hash_of(word), sum(ndoc) from mine, ts_stat(${rows}) group by 1
        on conflict (word) do update set interactions = word_counts.interactions + excluded.interactions`,
    );
    return count === countedAtOnce;
  }
}

/** CTE `unchanged`: one row, if the rows that were read are as they were, or gone. */
const unchanged = (sql: Sql, read: readonly Read[], now: Fragment) => sql`
  unchanged as (
    select 1 where not exists (
      select 1 from jsonb_to_recordset(${sql.json(read.map(({ id, version }) => ({ id, version })))}) as r(id bigint, version text)
        join (${now}) n using (id) where n.version <> r.version)
  )`;

/** CTE `moved`: what was read is taken over. */
const moved = (sql: Sql, source: "events" | "ephemeris", read: readonly Read[]) => sql`
  moved as (
    update memory_takeover set below = least(below, ${Math.min(...read.map(({ id }) => id))}::bigint)
    where source = ${source} and exists (select 1 from unchanged)
  )`;
