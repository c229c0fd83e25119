import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, UserId } from "../../base/lib/ids.ts";
import { noteCalls } from "./activity.ts";
import { amountOf, settleReservation } from "./budgets.ts";
import { insertWakes } from "./effects.ts";
import { keptPart, rememberSteps } from "./interactions.ts";
import { nextLog } from "./log-summary.ts";
import { recordOperations } from "./operation-record.ts";
import { insertOutbox, type Queued, queuedColumns } from "./outbox.ts";
import { insertRender } from "./renders.ts";
import { type LeftOpen, leaveOpen } from "./silences.ts";
import { draftsOf, Fenced, RequestChanged, type StepCommit, taintMost, Unheard } from "./steps.ts";
import { endWindows } from "./windows.ts";

/** A turn, as far as its steps need it. */
interface OpenTurn {
  readonly id: number;
  readonly agent: AgentName;
  readonly epoch: number;
}

/** Result of `commitSteps`. */
interface Committed {
  /** The agent's conversations that still wait, if the turn ends or is parked. */
  readonly waiting: Conversation[];
  /** Rows that are to be sent, if there are any. */
  readonly queued: Queued | undefined;
}

/** Reasons why steps were not written. */
interface Refusals {
  readonly isLive: boolean;
  readonly isUnheard: boolean;
  /** True if the turn still belongs to this runner. */
  readonly isOurs: boolean;
}

/**
 * Writes a step, or several, with everything that follows from them, in one statement. Throws `Fenced` if the turn no
 * longer belongs to this runner, `Unheard` or `RequestChanged` if it does. Safe to repeat: steps that this runner has
 * written already stay.
 */
export async function commitSteps(
  database: Database,
  turn: OpenTurn,
  steps: readonly StepCommit[],
): Promise<Committed> {
  const sum = sumOf(steps);
  const { drafts } = sum;
  const [row] = await database.run(
    (sql) => sql<(Pick<Committed, "waiting"> & Pick<Queued, "fresh" | "before"> & Refusals)[]>`
      with ${partsOf(sql, turn, sum).map((part, index) => (index === 0 ? part : sql`, ${part}`))}
      select ${drafts.length > 0 ? sql`${queuedColumns(sql, drafts)},` : sql``} ${refusals(sql, turn)},
        ${sum.leaves ? waitingOf(sql, turn) : sql`'[]'::jsonb`} as waiting`,
  );
  if (!row?.isLive) {
    if (!row?.isOurs) throw new Fenced(`turn ${turn.id} is no longer ours`);
    if (row.isUnheard) throw new Unheard(`not everybody who is there may read what turn ${turn.id} was shown`);
    throw new RequestChanged("what asked for it was edited or taken back meanwhile");
  }
  const { fresh, before, waiting } = row;
  return { waiting, queued: drafts.length > 0 ? { drafts, fresh, before } : undefined };
}

/** Parts of the statement, in the order in which they use each other. */
function partsOf(sql: Sql, turn: OpenTurn, sum: Sum): Fragment[] {
  const { operations, leftOpen, logTo, noted, usage, wakes, render, memories, drafts, ends } = sum;
  return [
    refuseUnheard(sql, turn, sum),
    advanceTurn(sql, turn, sum),
    findRepeated(sql, turn, sum),
    insertSteps(sql, sum),
    markSeen(sql, sum),
    recordUsage(sql, sum),
    ...(operations.length > 0 ? [recordOperations(sql, operations, "live")] : []),
    ...(logTo && noted.length > 0 ? [noteCalls(sql, logTo, noted, "live")] : []),
    ...(usage ? [settleReservation(sql, usage.reservation, amountOf(usage), "live")] : []),
    ...(wakes.length > 0 ? [insertWakes(sql, wakes, "live", wakes[0]?.chain ?? "")] : []),
    ...(memories.length > 0 ? [rememberSteps(sql, memories, "live")] : []),
    ...(render ? [sql`rendered as (${insertRender(sql, render, "live")})`] : []),
    remember(sql, sum),
    ...(drafts.length > 0 ? [sql`sending as (${insertOutbox(sql, drafts, "live", turn.id)})`] : []),
    ...(ends ? [endWindows(sql, "live")] : []),
    ...(leftOpen ? [leaveOpen(sql, leftOpen, ends)] : []),
  ];
}

/** Sum of the changes of steps that are written together. */
type Sum = ReturnType<typeof sumOf>;

function sumOf(steps: readonly StepCommit[]) {
  const last = steps.at(-1);
  if (!last) throw new Error("no step to write");
  const ends = steps.some((step) => step.ends);
  const used = steps.flatMap(({ n, usage }) => (usage ? [{ n, ...usage }] : []));
  const guarded = steps.filter(({ crossesWall }) => !crossesWall).flatMap(({ outbox = [] }) => outbox);
  return {
    last,
    ends,
    /** True if the turn ends, or is parked. */
    leaves: ends || last.asks === true,
    results: steps.map(({ n, name, result, asks }) => ({ n, name, result, state: asks ? "asked" : "done" })),
    seen: steps.flatMap((step) => step.seen ?? []),
    log: steps.findLast((step) => step.log)?.log,
    used,
    // Only one step of those that are written together may have called a model.
    usage: used.find(({ reservation }) => reservation !== undefined),
    render: steps.find((step) => step.render)?.render,
    // Entries of a step that asks stand before the entries of its end.
    entries: steps.flatMap(({ n, ephemeris = [], subAgent = null, asks }) =>
      ephemeris.map((entry, index) => ({ n, part: asks ? index - ephemeris.length : index + 1, entry, subAgent })),
    ),
    memories: steps.flatMap(({ n, ephemeris = [], remembered = [], kept = [], asks }) => [
      ...remembered.flatMap((memory, index) =>
        memory ? { ...memory, n, part: asks ? index - ephemeris.length : index + 1 } : [],
      ),
      ...kept.map((memory, index) => ({ ...memory, n, part: keptPart(index) })),
    ]),
    wakes: steps.flatMap((step) => step.wakes ?? []),
    operations: steps.flatMap((step) => step.operations ?? []),
    logTo: steps.find((step) => step.logTo)?.logTo,
    leftOpen: leftOpenBy(steps, ends),
    /** Keys of the operations that are noted there. */
    noted: steps.flatMap(({ logTo, operations = [] }) => (logTo ? operations.map(({ key }) => key) : [])),
    drafts: draftsOf(steps),
    sources: steps.flatMap((step) => step.sources ?? []),
    taint: steps.flatMap((step) => step.taint ?? []),
    audience: steps.findLast((step) => step.audience)?.audience,
    looksAnew: steps.some((step) => step.looksAnew),
    /** Places in which people hear something that they may not be allowed to read. */
    places: [...new Set(guarded.map(({ roomId }) => roomId))],
  };
}

/** All that the steps leave open; undefined where nothing can have changed. */
function leftOpenBy(steps: readonly StepCommit[], ends: boolean): LeftOpen | undefined {
  const all = steps.flatMap(({ leftOpen }) => leftOpen ?? []);
  const isQuestion = all.some((one) => one.isQuestion);
  const isPromise = all.some((one) => one.isPromise);
  const [first] = all;
  return first && (isQuestion || isPromise || ends) ? { ...first, isQuestion, isPromise } : undefined;
}

/** CTE `unheard`: places in which somebody who would hear the steps may not read all of their sources. */
const refuseUnheard = (sql: Sql, turn: OpenTurn, { places, audience, sources }: Sum) => sql`
  unheard as (
    select heard_in from turns t join agents a on a.name = t.agent, unnest(${places}::text[]) heard_in
    where t.id = ${turn.id} and not may_hear(
      heard_in, t.room_id, ${audienceNow(sql, sql`t.audience`, audience)}, t.sources || ${sources}::text[], a.owner)
  )`;

/** CTE `live`: the turn's row after the steps; empty if there is an obstacle, so that nothing is written. */
const advanceTurn = (sql: Sql, turn: OpenTurn, { last, ends, leaves, looksAnew, ...sum }: Sum) => sql`
  live as (
    update turns set
      sources = (select coalesce(array_agg(distinct s), '{}')
        from unnest(case when ${looksAnew} then '{}' else sources end || ${sum.sources}::text[]) s),
      former_sources = case when ${looksAnew} then former_sources || sources else former_sources end,
      audience = ${looksAnew ? sql`null` : audienceNow(sql, sql`audience`, sum.audience)},
      taint = (select coalesce(array_agg(t), '{}') from (
        select t from unnest(taint || ${sum.taint}::text[]) t
        group by t order by t like '@%', t limit ${taintMost}) known),
      state = case when ${ends} then 'done' when ${leaves} then 'parked' else state end,
      ended_at = case when ${ends} then now() end
    where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running' and not exists (select 1 from unheard)
      ${last.asks ? sql`and ${isStillAskedFor(sql, last.changes)}` : sql``}
    returning *
  )`;

/** Members of a turn's audience who are still there at a new look. */
const audienceNow = (sql: Sql, before: Fragment, now: readonly UserId[] | undefined) =>
  now === undefined
    ? before
    : sql`case when ${before} is null then ${[...now]}::text[]
        else array(select unnest(${before}) intersect select unnest(${[...now]}::text[])) end`;

/** Condition on a row of `turns`: nobody has edited or deleted its request since the agent saw it. */
const isStillAskedFor = (sql: Sql, changes: number | undefined) => sql`
  changes = coalesce(${changes ?? null}::integer, changes)
  and (exists (select 1 from wakes w left join events e using (event_id) where w.turn_id = turns.id and e.redacted_at is null)
    or not exists (select 1 from wakes w where w.turn_id = turns.id))`;

/** CTE `repeated`: the turn, where this runner has written the steps already. */
const findRepeated = (sql: Sql, turn: OpenTurn, { last }: Sum) => sql`
  repeated as (
    select t.id from turns t join steps s on s.turn_id = t.id
    where t.id = ${turn.id} and t.epoch = ${turn.epoch}
      and s.n = ${last.n} and s.name = ${last.name} and s.state = ${last.asks ? "asked" : "done"}
  )`;

/** CTE `step`: a row for each step; one that was begun is finished. */
const insertSteps = (sql: Sql, { results }: Sum) => sql`
  step as (
    insert into steps (turn_id, n, name, state, result)
    select live.id, s.n, s.name, s.state, s.result
    from live, jsonb_to_recordset(${sql.json(results)}) as s(n integer, name text, state text, result jsonb)
    on conflict (turn_id, n) do update set state = excluded.state, result = excluded.result where steps.state <> 'done'
  )`;

/** CTE `seen`: up to where the conversation was shown its room, and how its log goes on. */
const markSeen = (sql: Sql, { seen, log }: Sum) => sql`
  seen as (
    insert into conversations (agent, room_id, seen_position, log)
    select agent, room_id, ${Math.max(0, ...seen)}::float8, ${log === undefined ? null : sql.json(log as unknown as Json)}::jsonb
    from live where ${seen.length > 0}
    on conflict (agent, room_id) do update set
      log = ${nextLog(sql)},
      seen_position = greatest(conversations.seen_position, excluded.seen_position)
  )`;

/** CTE `used`: tokens and money of the model's calls. */
const recordUsage = (sql: Sql, { used }: Sum) => sql`
  used as (
    insert into usage (turn_id, n, agent, room_id, requesters, model, prompt_tokens, cached_tokens, completion_tokens,
      cost_usd, estimated, milliseconds, prompt_chars, prefix_chars, shares)
    select id, u.n, agent, room_id, requesters, u.model, u."promptTokens", u."cachedTokens", u."completionTokens",
      u."costUsd", u."isEstimated", u.milliseconds, u."promptChars", u."prefixChars", u.shares
    from live, jsonb_to_recordset(${sql.json(used as unknown as Json)}) as u(n integer, model text, "promptTokens" integer,
      "cachedTokens" integer, "completionTokens" integer, "costUsd" float8, "isEstimated" boolean, milliseconds integer,
      "promptChars" integer, "prefixChars" integer, shares jsonb)
    on conflict do nothing
  )`;

/** CTE `thought`: entries for the ephemeris, behind the walls that stood around the turn. */
const remember = (sql: Sql, { entries }: Sum) => sql`
  thought as (
    insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint, place)
    select a.user_id, live.room_id, live.id, e.n, e.part, e.entry, e."subAgent", live.sources, live.taint, live.place
    from live join agents a on a.name = live.agent,
      jsonb_to_recordset(${sql.json(entries)}) as e(n integer, part integer, entry text, "subAgent" text)
    order by e.n, e.part
    on conflict do nothing
  )`;

/** Columns of `Refusals`. */
const refusals = (sql: Sql, turn: OpenTurn) => sql`
  exists (select 1 from live) or exists (select 1 from repeated) as "isLive",
  exists (select 1 from unheard) as "isUnheard",
  exists (select 1 from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running') as "isOurs"`;

/** The agent's conversations that have a wake nobody took, or a turn that can go on. */
const waitingOf = (sql: Sql, turn: OpenTurn) => sql`(
  select coalesce(jsonb_agg(distinct jsonb_build_object('agent', agent, 'roomId', room_id)), '[]') from (
    select agent, room_id from wakes where agent = ${turn.agent} and turn_id is null
    union all select agent, room_id from turns where agent = ${turn.agent} and state = 'ready') w)`;
