import type { Database, Fragment, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { dropSummaries } from "./log-summary.ts";

/** Texts that somebody wants forgotten. */
export interface ToForget {
  readonly roomId: RoomId;
  /** Agents whose own memories of the room are meant as well. */
  readonly agents: readonly AgentName[];
  /** Only what has all of these words. */
  readonly words?: string | undefined;
  /** Only what this person has said, or had remembered. */
  readonly by?: UserId | undefined;
  /** The command that asks for it. */
  readonly except?: EventId | undefined;
}

/** Something that can be forgotten. */
export interface Forgettable {
  /** By which it is ordered; the older ones have lower numbers. */
  readonly id: number;
}

/** It, and the words in it. */
export interface ForgettableText extends Forgettable {
  readonly text: string;
}

export interface SaidHere extends Forgettable {
  readonly eventId: EventId;
  readonly type: string;
  /** Its text now, the one before it was edited, and its edits. */
  readonly contents: readonly Record<string, unknown>[];
}

/** Rows that are read at once. */
export const forgottenAtOnce = 500;

/**
 * Condition: a text may have these words. Whoever reads it looks closer: here they may be parts of other words, and letters
 * beyond ASCII are any letters.
 */
export const mayHave = (sql: Sql, text: Fragment, words = ""): Fragment => {
  const parts = words.normalize("NFKC").split(/\s+/).filter(Boolean);
  const patterns = parts.map((part) => `%${part.replace(/[^a-z0-9]+/gi, "%")}%`);
  return sql`normalize(${text}, NFKC) ilike all (${patterns}::text[])`;
};

/** End of a query: the next rows that may have the words, the newest first. */
export const nextOf = (
  sql: Sql,
  { words }: ToForget,
  {
    below,
    id,
    text,
    most = forgottenAtOnce,
  }: { below: number | undefined; id: Fragment; text: Fragment; most?: number },
): Fragment => sql`
  and (${below ?? null}::bigint is null or ${id} < ${below ?? null}::bigint) and ${mayHave(sql, text, words)}
  order by ${id} desc limit ${most}`;

/** Condition: an event `e` is in the room, and by the person who is meant. */
export const saidHere = (sql: Sql, { by, except, roomId }: ToForget): Fragment => sql`(
  e.room_id = ${roomId} and e.redacted_at is null and e.event_id is distinct from ${except ?? null}
  and (${by ?? null}::text is null or e.sender = ${by ?? null}))`;

/** Finds messages in a room, whether agents remember them or not, the newest first. */
export const findMessagesToForget = (
  database: Database,
  what: ToForget,
  below: number | undefined,
): Promise<SaidHere[]> =>
  database.run(
    (sql) => sql<SaidHere[]>`
      select e.seq as id, e.event_id as "eventId", e.type, c.contents
      from events e cross join lateral (
        select jsonb_agg(content) as contents from (
          select e.content union all select e.original where e.original is not null
          union all select r.content from events r where r.replaces = e.event_id and r.sender = e.sender) texts) c
      where ${saidHere(sql, what)} and e.replaces is null
        and e.type in ('m.room.message', 'm.sticker', 'm.room.topic', 'm.room.name')
        ${nextOf(sql, what, { below, id: sql`e.seq`, text: sql`c.contents::text` })}`,
  );

/** Finds memories of agents' own, made in a room, the newest first. */
export const findOwnToForget = (
  database: Database,
  what: ToForget,
  below: number | undefined,
): Promise<ForgettableText[]> =>
  database.run(
    (sql) => sql<ForgettableText[]>`
      select id, substr(text, length(speaker) + 3) as text from interactions
      where room_id = ${what.roomId} and event_id is null and agent = any (${[...what.agents]}::text[])
        and (${what.by ?? null}::text is null or sender = ${what.by ?? null} or requester = ${what.by ?? null})
        ${nextOf(sql, what, { below, id: sql`id`, text: sql`text` })}`,
  );

/** Words that are looked for, as of a redacted event: see `RedactionMarks`. */
export interface ForgottenWords {
  /** Names what is forgotten; salt of the fingerprints. */
  readonly key: string;
  readonly prints: readonly string[];
}

/**
 * End of a statement: empties the renders in which something may be read that is gone, and drops the summaries of logs
 * that may have been made from it. CTE `gone`: agents, and the turn by which, or after which, each has it.
 */
export const unseenBy = (sql: Sql): Fragment => sql`
  unsummarised as (
    ${dropSummaries(sql, sql`c.agent in (select agent from gone)`)}
  )
  update renders set system = '', prompt = '' where system <> '' and turn_id in (
    select t.id from gone g join turns t on t.agent = g.agent and t.id >= coalesce(g.turn_id, 0))`;

/**
 * Forgets memories of agents' own, with the entries of the ephemeris that they stand for, and empties the renders in
 * which these may be read. Marks that repetitions of their words are still to be blanked.
 */
export async function forgetOwn(
  database: Database,
  ids: readonly number[],
  { key, prints }: ForgottenWords,
): Promise<void> {
  await database.run(
    (sql) => sql`
      with gone as (
        delete from interactions where id = any (${ids.map(String)}::text[]::bigint[]) and event_id is null
        returning id, shareable, agent, turn_id, n, part, at, sources, room_id
      ), marked as (
        insert into redactions (event_id, places, since, prints, memories)
        select ${key}, array(select distinct place from gone, unnest(sources || room_id) place),
          (select min(least(g.at, coalesce(t.started_at, g.at))) from gone g left join turns t on t.id = g.turn_id), ${[...prints]}::text[],
          array(select id from gone where shareable)
        where exists (select 1 from gone) and cardinality(${[...prints]}::text[]) > 0
        on conflict (event_id) do nothing
      ), entries as (
        delete from ephemeris e using gone g where e.turn_id = g.turn_id and e.n = g.n and e.part = g.part
      ), ${unseenBy(sql)}`,
  );
}

/** Finds entries of agents' ephemeris in a room, the newest first: calls of some tools are no memories. */
export const findEntriesToForget = (
  database: Database,
  what: ToForget,
  below: number | undefined,
): Promise<ForgettableText[]> =>
  database.run(
    (sql) => sql<ForgettableText[]>`
      select e.id, e.entry as text from ephemeris e left join turns t on t.id = e.turn_id
      where e.room_id = ${what.roomId}
        and e.user_id in (select user_id from agents where name = any (${[...what.agents]}::text[]))
        and (${what.by ?? null}::text is null or t.requesters[1] = ${what.by ?? null})
        ${nextOf(sql, what, { below, id: sql`e.id`, text: sql`e.entry` })}`,
  );

/** Forgets entries of agents' ephemeris, and empties the renders in which these may be read. */
export async function forgetEntries(database: Database, ids: readonly number[]): Promise<void> {
  await database.run(
    (sql) => sql`
      with gone as (
        delete from ephemeris e using agents a where e.id = any (${ids.map(String)}::text[]::bigint[]) and a.user_id = e.user_id
        returning a.name as agent, e.turn_id
      ), ${unseenBy(sql)}`,
  );
}

/** Puts another text in place of a message's, also where agents were shown it; in its room it stays. */
export async function rewriteSaid(database: Database, eventId: EventId, body: string): Promise<void> {
  await database.run(
    (sql) => sql`
      with unseen as (
        update renders set system = '', prompt = '' where event_ids && array[${eventId}]
      )
      update events set original = null, content = jsonb_build_object('msgtype', content->'msgtype', 'body', ${body}::text)
        || case when content ? 'm.relates_to' then jsonb_build_object('m.relates_to', content->'m.relates_to') else '{}' end
      where event_id = ${eventId} and redacted_at is null`,
  );
}
