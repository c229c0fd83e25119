import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { type CallUsage, settleReservation, spentBy } from "./budgets.ts";
import { insertWakes, type WakeDraft } from "./effects.ts";
import { type OperationRecord, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft, type Queued, queuedColumns } from "./outbox.ts";
import { insertRender, type NewRender } from "./renders.ts";
import { endWindows } from "./windows.ts";

export interface Step {
  readonly n: number;
  readonly name: string;
  /** `started`: begun, and not to be repeated; `asked`: waits for a person's decision, or for its turn to go on with it. */
  readonly state: "started" | "asked" | "done";
  readonly result: Json;
}

/** Tokens and money that the model call of a step consumed. */
interface StepUsage extends CallUsage {
  /** Length of what was sent, and of its beginning that was the same in the conversation's previous call. */
  readonly promptChars?: number;
  readonly prefixChars?: number;
  /** Key under which the reservation of the call is settled. */
  readonly reservation: string | undefined;
}

export interface StepCommit {
  readonly n: number;
  readonly name: string;
  readonly result: Json;
  /** Made from what was rendered: written only if everybody who hears it may read that; see `Unheard`. */
  readonly outbox?: readonly OutboxDraft[];
  /** Sent whoever hears it. */
  readonly notices?: readonly OutboxDraft[];
  /** Somebody who was told of the wall has let the outbox over it. */
  readonly crossesWall?: boolean;
  /** LMML elements for the ephemeris, in order. */
  readonly ephemeris?: readonly string[];
  /** They are a sub-agent's: shown to people, and not to the agent. */
  readonly subAgent?: string | undefined;
  readonly usage?: StepUsage | undefined;
  /** Render that the step was shown, if it is not kept yet. */
  readonly render?: NewRender | undefined;
  /** Rooms that were rendered for this step. */
  readonly sources?: readonly RoomId[];
  /** The humans for whom they were rendered. */
  readonly audience?: readonly UserId[] | undefined;
  /** Nothing that was rendered before is shown in the turn any more: `sources` are all there are. */
  readonly looksAnew?: boolean;
  /** Untrusted texts that were rendered for it: user ids, and paths of files. */
  readonly taint?: readonly string[];
  /** Up to where the room's events were rendered. */
  readonly seen?: number;
  /** How the conversation's log is to be shown from now on. */
  readonly log?: LogState | undefined;
  /** Other agents' conversations that go on from here: agents spend the budget of the chain that the first names. */
  readonly wakes?: readonly WakeDraft[] | undefined;
  /** Records of operations in the step: its own, and one that it replaces. */
  readonly operations?: readonly OperationRecord[];
  /** The turn ends with this step. */
  readonly ends?: boolean;
  /** The step is not done: it asks people, and the turn is parked until they have decided. */
  readonly asks?: boolean;
  /** Asked only if none of the messages that the turn works on has changed since; see `Seen`, `RequestChanged`. */
  readonly changes?: number | undefined;
}

/**
 * State of the log that a conversation is shown, so that the next render begins as the last one did. If it is lost,
 * only that is lost.
 */
export interface LogState {
  /** By room: events up to this place are not shown any more. */
  readonly from: Readonly<Record<string, number>>;
  /** By turn: up to where it was shown each room in which there was something newer. */
  readonly marks: readonly { readonly turn: number; readonly to: Readonly<Record<string, number>> }[];
}

/** Names that are kept of what a turn was tainted by. */
export const taintMost = 20;

/** Another runner has taken the turn over, or it was stopped: whoever sees this must not go on. */
export class Fenced extends Error {
  override readonly name = "Fenced";
}

/** Nothing was written: somebody would hear it who may not read all that it was made from. */
export class Unheard extends Error {
  override readonly name = "Unheard";
}

/** Nothing was written: what the step asks for was asked of the agent in words that are not there any more. */
export class RequestChanged extends Error {
  override readonly name = "RequestChanged";
}

/** The rooms for which steps have something in the outbox. */
export const roomsSpokenIn = (steps: readonly StepCommit[]): RoomId[] => [
  ...new Set(draftsOf(steps).map(({ roomId }) => roomId)),
];

const draftsOf = (steps: readonly StepCommit[]): OutboxDraft[] =>
  steps.flatMap(({ outbox = [], notices = [] }) => [...outbox, ...notices]);

/** A turn, as far as its steps need it. */
interface OpenTurn {
  readonly id: number;
  readonly agent: AgentName;
  readonly epoch: number;
}

/** Why steps were not written. */
interface Refusals {
  readonly live: boolean;
  readonly unheard: boolean;
  /** The turn is still this runner's. */
  readonly ours: boolean;
}

/** Those of a turn's audience who are also there at a new look. */
const audienceNow = (sql: Sql, before: Fragment, now: readonly UserId[] | undefined) =>
  now === undefined
    ? before
    : sql`case when ${before} is null then ${[...now]}::text[]
        else array(select unnest(${before}) intersect select unnest(${[...now]}::text[])) end`;

/** Condition on a row of `turns`: its request is still there, and as the agent saw it. */
const isStillAskedFor = (
  sql: Sql,
  changes: number | undefined,
) => sql`changes = coalesce(${changes ?? null}::integer, changes)
  and (exists (select 1 from wakes w left join events e using (event_id) where w.turn_id = turns.id and e.redacted_at is null)
    or not exists (select 1 from wakes w where w.turn_id = turns.id))`;

/** Result of `commitSteps`. */
interface Committed {
  /** The agent's conversations that still wait, if the turn ends or is parked. */
  readonly waiting: Conversation[];
  /** Rows that are to be sent, if there are any. */
  readonly queued: Queued | undefined;
}

/**
 * Writes a step, or several, with everything that follows from them, in one statement. Throws `Fenced` when the turn is
 * no longer this runner's, `Unheard` and `RequestChanged` where it still is. Safe to repeat: what this runner has written
 * already stays.
 */
export async function commitSteps(
  database: Database,
  turn: OpenTurn,
  steps: readonly StepCommit[],
): Promise<Committed> {
  const last = steps.at(-1);
  if (!last) throw new Error("no step to write");
  const ends = steps.some((step) => step.ends);
  const leaves = ends || last.asks === true;
  const seen = steps.flatMap((step) => step.seen ?? []);
  const log = steps.findLast((step) => step.log)?.log;
  const used = steps.flatMap(({ n, usage }) => (usage ? [{ n, ...usage }] : []));
  // Only one step of those that are written together may have called a model.
  const render = steps.find((step) => step.render)?.render;
  const usage = used.find(({ reservation }) => reservation !== undefined);
  // Entries of a step that asks stand before the entries of its end.
  const entries = steps.flatMap(({ n, ephemeris = [], subAgent = null, asks }) =>
    ephemeris.map((entry, index) => ({ n, part: asks ? index - ephemeris.length : index + 1, entry, subAgent })),
  );
  const wakes = steps.flatMap((step) => step.wakes ?? []);
  const results = steps.map(({ n, name, result, asks }) => ({ n, name, result, state: asks ? "asked" : "done" }));
  const operations = steps.flatMap((step) => step.operations ?? []);
  const drafts = draftsOf(steps);
  const sources = steps.flatMap((step) => step.sources ?? []);
  const audience = steps.findLast((step) => step.audience)?.audience;
  const anew = steps.some((step) => step.looksAnew);
  const guarded = steps.filter(({ crossesWall }) => !crossesWall).flatMap(({ outbox = [] }) => outbox);
  const places = [...new Set(guarded.map(({ roomId }) => roomId))];
  const [row] = await database.run(
    (sql) => sql<(Pick<Committed, "waiting"> & Pick<Queued, "fresh" | "before"> & Refusals)[]>`
        with unheard as (
          select heard_in from turns t join agents a on a.name = t.agent, unnest(${places}::text[]) heard_in
          where t.id = ${turn.id} and not may_hear(
            heard_in, t.room_id, ${audienceNow(sql, sql`t.audience`, audience)}, t.sources || ${sources}::text[], a.owner)
        ), live as (
          update turns set
            sources = (select coalesce(array_agg(distinct s), '{}')
              from unnest(case when ${anew} then '{}' else sources end || ${sources}::text[]) s),
            former_sources = case when ${anew} then former_sources || sources else former_sources end,
            audience = ${anew ? sql`null` : audienceNow(sql, sql`audience`, audience)},
            taint = (select coalesce(array_agg(t), '{}') from (
              select t from unnest(taint || ${steps.flatMap((step) => step.taint ?? [])}::text[]) t
              group by t order by t like '@%', t limit ${taintMost}) known),
            state = case when ${ends} then 'done' when ${leaves} then 'parked' else state end,
            ended_at = case when ${ends} then now() end
          where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running' and not exists (select 1 from unheard)
            ${last.asks ? sql`and ${isStillAskedFor(sql, last.changes)}` : sql``}
          returning *
        ), repeated as (
          select t.id from turns t join steps s on s.turn_id = t.id
          where t.id = ${turn.id} and t.epoch = ${turn.epoch} and s.n = ${last.n} and s.name = ${last.name} and s.state = ${last.asks ? "asked" : "done"}
        ), step as (
          insert into steps (turn_id, n, name, state, result)
          select live.id, s.n, s.name, s.state, s.result
          from live, jsonb_to_recordset(${sql.json(results)}) as s(n integer, name text, state text, result jsonb)
          on conflict (turn_id, n) do update set state = excluded.state, result = excluded.result where steps.state <> 'done'
        ), seen as (
          insert into conversations (agent, room_id, seen_position, log)
          select agent, room_id, ${Math.max(0, ...seen)}::float8, ${log === undefined ? null : sql.json(log as unknown as Json)}::jsonb
          from live where ${seen.length > 0}
          on conflict (agent, room_id) do update set log = coalesce(excluded.log, conversations.log),
            seen_position = greatest(conversations.seen_position, excluded.seen_position)
        ), used as (
          insert into usage (turn_id, n, agent, room_id, requesters, model, prompt_tokens, cached_tokens, completion_tokens, cost_usd, estimated, milliseconds, prompt_chars, prefix_chars)
          select id, u.n, agent, room_id, requesters, u.model, u."promptTokens", u."cachedTokens", u."completionTokens", u."costUsd", u.estimated, u.milliseconds,
            u."promptChars", u."prefixChars"
          from live, jsonb_to_recordset(${sql.json(used as unknown as Json)}) as u(n integer, model text, "promptTokens" integer,
            "cachedTokens" integer, "completionTokens" integer, "costUsd" float8, estimated boolean, milliseconds integer,
            "promptChars" integer, "prefixChars" integer)
          on conflict do nothing
        ), ${operations.length > 0 ? sql`${recordOperations(sql, operations, "live")},` : sql``}
        ${usage === undefined ? sql`` : sql`${settleReservation(sql, usage.reservation, spentBy(usage), "live")},`}
        ${wakes.length === 0 ? sql`` : sql`${insertWakes(sql, wakes, "live", wakes[0]?.chain ?? "")},`}
        ${render === undefined ? sql`` : sql`kept as (${insertRender(sql, render, "live")}),`}
        thought as (
          insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint, place)
          select a.user_id, live.room_id, live.id, e.n, e.part, e.entry, e."subAgent", live.sources, live.taint, live.place
          from live join agents a on a.name = live.agent,
            jsonb_to_recordset(${sql.json(entries)}) as e(n integer, part integer, entry text, "subAgent" text)
          order by e.n, e.part
          on conflict do nothing
        )
        ${drafts.length > 0 ? sql`, sending as (${insertOutbox(sql, drafts, "live", turn.id)})` : sql``}
        ${ends ? sql`, ${endWindows(sql, "live")}` : sql``}
        select ${drafts.length > 0 ? sql`${queuedColumns(sql, drafts)},` : sql``}
          exists (select 1 from live) or exists (select 1 from repeated) as live, exists (select 1 from unheard) as unheard,
          exists (select 1 from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running') as ours, case when ${leaves} then (
          select coalesce(jsonb_agg(distinct jsonb_build_object('agent', agent, 'roomId', room_id)), '[]') from (
            select agent, room_id from wakes where agent = ${turn.agent} and turn_id is null
            union all select agent, room_id from turns where agent = ${turn.agent} and state = 'ready') w
        ) else '[]' end as waiting`,
  );
  if (!row?.live) {
    if (!row?.ours) throw new Fenced(`turn ${turn.id} is no longer ours`);
    if (row.unheard) throw new Unheard(`not everybody who is there may read what turn ${turn.id} was shown`);
    throw new RequestChanged("what asked for it was edited or taken back meanwhile");
  }
  const { fresh, before, waiting } = row;
  return { waiting, queued: drafts.length > 0 ? { drafts, fresh, before } : undefined };
}
