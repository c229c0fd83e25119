import type { Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { EventId } from "../../base/lib/ids.ts";

export type InteractionKind = "observation" | "action" | "thought" | "summary" | "fact";

/** Memory of something that was noticed or done. */
export interface Memory {
  readonly kind: InteractionKind;
  /** Sensor or tool. */
  readonly tool?: string | undefined;
  /** Without the name of whoever says it, which is put before it. */
  readonly text: string;
  /** From 0 to 1. */
  readonly importance: number;
  /** The newest of a key supersedes the older ones of the conversation. */
  readonly factKey?: string;
  /** Somebody who may has let it over every wall. */
  readonly isShareable?: boolean;
}

/** Memory of a step: of an entry in the ephemeris, or one that a tool keeps (see `keptPart`). */
export interface StepMemory extends Memory {
  readonly n: number;
  readonly part: number;
}

/** Number for what a tool keeps beside the entries of its step; `index` counts from 0. */
export const keptPart = (index: number): number => -1_000 - index;

/** Longest text that is kept of an interaction, in characters: the beginning of a longer one. */
const textMost = 8_000;

const cut = <Kept extends Memory>({ text, ...memory }: Kept) => ({ ...memory, text: text.slice(0, textMost) });

const asJson = (sql: Sql, memories: readonly Memory[]) => sql.json(memories.map(cut) as unknown as Json);

/** CTE: the texts of the rows of the CTE `of` are to be embedded. */
const embedLater = (sql: Sql, of: string) => sql`
  ${sql(`${of}_later`)} as (insert into interactions_to_embed select id from ${sql(of)} on conflict do nothing)`;

/** Untrusted texts behind a message of ours. */
const taintOfTurn = (sql: Sql, isItsRow: Fragment) => sql`
  (select t.taint from outbox o join turns t on t.id = o.turn_id where ${isItsRow})`;

/** Memory that agents have of an event. */
export interface EventMemory {
  readonly eventId: EventId;
  readonly memory: Memory;
}

/**
 * Part of a statement, after `with` or a comma: what agents remember of events. An event that is redacted, or is
 * remembered already, changes nothing.
 * @param once table or CTE that has a row if the events are new
 * @param echoOf key of the row of the outbox that has come back as one of them
 */
export const rememberEvents = (sql: Sql, memories: readonly EventMemory[], once: string, echoOf?: string) => sql`
  remembered as (
    insert into interactions (kind, room_id, event_id, tool, sender, at, place, sources, speaker, text, importance, taint)
    select m.kind, e.room_id, e.event_id, m.tool, e.sender, e.sent_at, e.position, array[e.room_id], speaker,
      speaker || ': ' || m.text, m.importance,
      coalesce(${taintOfTurn(sql, sql`o.key = ${echoOf ?? null}`)}, ${taintOfTurn(sql, sql`o.event_id = e.event_id`)}, '{}')
    from jsonb_to_recordset(${sql.json(memories.map(({ eventId, memory }) => ({ ...cut(memory), eventId })) as unknown as Json)})
        as m("eventId" text, kind text, tool text, text text, importance real)
      join events e on e.event_id = m."eventId", speaker_of(e.room_id, e.sender) as speaker
    where e.redacted_at is null and exists (select 1 from ${sql(once)})
    on conflict (event_id) do nothing
    returning id
  ), ${embedLater(sql, "remembered")}`;

/**
 * Part of a statement, after `with` or a comma: an event that is remembered says something else now, or nothing any more.
 * @param memory undefined where nothing of it is to be remembered
 */
export const rememberAnew = (sql: Sql, eventId: EventId, memory: Memory | undefined) => sql`
  remembered as (
    update interactions set text = speaker || ': ' || ${memory ? cut(memory).text : ""}, 
      importance = case when kind = 'action' then importance else ${memory?.importance ?? 0} end
    where event_id = ${eventId} returning id
  ), unembedded as (
    delete from interaction_vectors where interaction_id in (select id from remembered)
  ), ${embedLater(sql, "remembered")}`;

/**
 * Part of a statement, after `with` or a comma: what an agent remembers of steps, or a person has it remember by a
 * command.
 * @param from table or CTE with the turn: id (null for a command), agent, room_id, requesters, sources, taint, place
 */
export const rememberSteps = (sql: Sql, memories: readonly (Memory | StepMemory)[], from: string) => sql`
  kept as (
    insert into interactions (kind, agent, room_id, turn_id, n, part, tool, sender, place, sources, speaker, text,
      importance, requester, taint, fact_key, shareable)
    select m.kind, f.agent, f.room_id, f.id, m.n, m.part, m.tool, s.sender, f.place,
      array(select distinct unnest(f.sources || f.room_id)), speaker, speaker || ': ' || m.text,
      m.importance, f.requesters[1], f.taint, m."factKey", coalesce(m."isShareable", false)
    from ${sql(from)} f join agents a on a.name = f.agent
      cross join lateral (select case when f.id is null then f.requesters[1] else a.user_id end as sender) s,
      speaker_of(f.room_id, s.sender) as speaker,
      jsonb_to_recordset(${asJson(sql, memories)}) as m(kind text, n integer, part integer, tool text, text text,
        importance real, "factKey" text, "isShareable" boolean)
    on conflict do nothing
    returning id
  ), ${embedLater(sql, "kept")}`;
