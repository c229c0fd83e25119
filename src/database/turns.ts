import type { WakeReason } from "../context/types.ts";
import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import { InTurn } from "../lib/in-turn.ts";
import type { Database } from "./connection.ts";
import { endOperations, type OperationRecord, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import type { Conversation } from "./routing.ts";
import { commitSteps, Fenced, roomsSpokenIn, type Step, type StepCommit } from "./steps.ts";
import { endWindows } from "./windows.ts";

export interface Turn {
  readonly id: number;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  /** What the agent is shown as `turnId`: rises by one with each turn of the agent. */
  readonly number: number;
  readonly reason: WakeReason;
  readonly epoch: number;
  readonly chain: string | null;
  readonly sources: readonly RoomId[];
  /** Those for whom it works; see `agent/turn.ts`. */
  readonly requesters: readonly UserId[];
  /** Untrusted texts that it was shown: user ids, and paths of files. */
  readonly taint: readonly string[];
  readonly startedAt: Date;
}

/** A wake that a turn has taken. */
export interface TakenWake {
  readonly id: number;
  readonly reason: WakeReason;
  readonly eventId: EventId | null;
  readonly requester: UserId | null;
  /** See `WakeDraft`. */
  readonly note: string | null;
  /** Not everybody in the audience may read the note. */
  readonly withheld: boolean;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  /** The thread in which the event stands. */
  readonly threadId: EventId | null;
}

/** A turn that was just taken. */
export interface ClaimedTurn extends Turn {
  /** What a turn that was opened has taken; null for one that was taken over, or goes on with a decision. */
  readonly wakes: readonly TakenWake[] | null;
}

/** A turn that has not ended. */
export interface OpenTurn extends Turn {
  readonly state: "running" | "parked" | "ready";
}

/** What is said of an operation in whose middle its turn breaks off. */
interface BreakOff {
  /** For the ephemeris. */
  readonly entry: string;
  readonly subAgent: string | undefined;
  readonly outbox: readonly OutboxDraft[];
}

const turnColumns = `id, agent, room_id as "roomId", number, reason, epoch, chain, sources, requesters, taint, started_at as "startedAt"`;

const wakeColumns = `w.id, w.reason, w.event_id as "eventId", w.requester, w.note, w.sources, w.taint,
  exists (select 1 from unnest(w.sources) s join agents a on a.name = w.agent
    where s <> w.room_id and not may_read(audience_of(w.room_id, a.owner), s, a.owner)) as withheld,
  case when e.content->'m.relates_to'->>'rel_type' = 'm.thread' then e.content->'m.relates_to'->>'event_id' end as "threadId"`;

/** What is said of a turn that did not end by itself: LMML, and the sub-agent whose call it concerns. */
interface LastEntry {
  readonly entry: string;
  readonly subAgent: string | null;
}

/** Number of a step behind all others: of what is said of a turn that did not end by itself. */
const lastOfAll = 1_000_000;
/** Events that one turn takes at the most. */
const eventsPerTurn = 10;

export class Turns {
  readonly #database: Database;
  readonly #queueing = new InTurn<RoomId>();
  /** Names the process in the rows it works on. */
  readonly runner: string;

  constructor(database: Database, runner: string) {
    this.#database = database;
    this.runner = runner;
  }

  /**
   * Takes the conversation's open turn over (its epoch rises), goes on with one that was parked and has its decision (the
   * same), or opens one for the oldest unread wakes. `idle`: there is nothing to do. `busy`: the agent works in as many
   * conversations as it may, or somebody else has just opened a turn in this one.
   */
  async claim({ agent, roomId }: Conversation, maxConcurrent: number): Promise<ClaimedTurn | "idle" | "busy"> {
    const [row] = await this.#database.run(
      (sql) => sql<(ClaimedTurn & { busy: boolean })[]>`
        with ready as (
          select id from turns where agent = ${agent} and room_id = ${roomId} and state = 'ready' order by id limit 1
        ), admitted as (
          update agents set last_turn_at = now()
          where name = ${agent} and paused_at is null and exists (select 1 from ready)
            and may_open_turn(name, ${roomId}, ${maxConcurrent})
          returning name
        ), resumed as (
          update turns set epoch = epoch + 1, runner = ${this.runner}, state = 'running'
          where agent = ${agent} and room_id = ${roomId}
            and (state = 'running' or id = (select id from ready) and state = 'ready' and exists (select 1 from admitted))
          returning *
        ), unread as (
          select * from wakes
          where agent = ${agent} and room_id = ${roomId} and turn_id is null and not exists (select 1 from resumed)
            and not exists (select 1 from ready)
          order by id limit ${eventsPerTurn}
        ), counted as (
          update agents set turns = turns + 1, last_turn_at = now()
          where name = ${agent} and paused_at is null and exists (select 1 from unread)
            and may_open_turn(name, ${roomId}, ${maxConcurrent})
          returning turns
        ), opened as (
          insert into turns (agent, room_id, number, reason, runner, requesters, chain)
          select ${agent}, ${roomId}, counted.turns, (select reason from unread order by id limit 1), ${this.runner},
            (select coalesce(array_agg(distinct requester) filter (where requester is not null), '{}') from unread),
            (select chain from unread order by (chain = event_id) desc nulls last, id desc limit 1)
          from counted returning *
        ), taken as (
          update wakes set turn_id = (select id from opened) where id in (select id from unread) and exists (select 1 from opened)
        ), conversation as (
          insert into conversations (agent, room_id) select agent, room_id from opened on conflict do nothing
        )
        select ${sql.unsafe(turnColumns)}, false as busy, null as wakes from resumed
        union all select ${sql.unsafe(turnColumns)}, false, (
          select jsonb_agg(to_jsonb(t) order by t.id) from (select ${sql.unsafe(wakeColumns)}
            from unread w left join events e on e.event_id = w.event_id) t)
        from opened
        union all select 0, ${agent}, ${roomId}, 0, '', 0, null, '{}', '{}', '{}', now(), true, null
          where not exists (select 1 from resumed) and not exists (select 1 from opened)
            and (exists (select 1 from unread) or exists (select 1 from ready))`,
    );
    if (!row) return "idle";
    return row.busy ? "busy" : row;
  }

  /**
   * What the turn has taken so far, after it has (with `more`) also taken what came since, up to its limit. A human's
   * event begins a new chain also for a turn that an agent caused.
   */
  async absorb(turn: Turn, { more }: { more: boolean }): Promise<TakenWake[]> {
    return this.#database.run(
      (sql) => sql<TakenWake[]>`
        with before as (
          select * from wakes where turn_id = ${turn.id}
        ), fresh as (
          select w.* from wakes w
          where ${more} and w.agent = ${turn.agent} and w.room_id = ${turn.roomId} and w.turn_id is null
            and exists (select 1 from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running')
          order by w.id limit greatest(0, ${eventsPerTurn} - (select count(*) from before))
        ), taken as (
          update wakes set turn_id = ${turn.id} where id in (select id from fresh)
        ), turn as (
          update turns set requesters = (select array_agg(distinct r) from (
            select unnest(requesters) as r union select requester from fresh where requester is not null) all_of_them),
            chain = coalesce((select f.chain from fresh f where f.chain = f.event_id order by f.id desc limit 1), turns.chain)
          where id = ${turn.id} and exists (select 1 from fresh where requester is not null)
        )
        select ${sql.unsafe(wakeColumns)}
        from (table before union all table fresh) w left join events e on e.event_id = w.event_id
        order by w.id`,
    );
  }

  /** The steps that were written so far, in order. */
  journal(turn: Turn): Promise<Step[]> {
    return this.#database.run(
      (sql) => sql<Step[]>`select n, name, state, result from steps where turn_id = ${turn.id} order by n`,
    );
  }

  /** Marks a step that must not be repeated as begun, and records its operation. */
  async begin(turn: Turn, n: number, name: string, operation: OperationRecord): Promise<void> {
    const [row] = await this.#database.run(
      (sql) => sql<{ live: boolean }[]>`
        with live as (
          select * from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running'
        ), begun as (
          insert into steps (turn_id, n, name, state) select id, ${n}, ${name}, 'started' from live
          on conflict (turn_id, n) do update set state = 'started' where steps.state = 'asked'
        ), ${recordOperations(sql, [operation], "live")}
        select exists (select 1 from live) as live`,
    );
    if (!row?.live) throw new Fenced(`turn ${turn.id} is no longer ours`);
  }

  /** Parks a turn again whose question is still open; a decision that came meanwhile makes it ready. */
  async park(turn: Turn, operationKey: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update turns set state = case when exists (
          select 1 from operations where key = ${operationKey} and state = 'asked' and decision is null) then 'parked' else 'ready' end
        where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running'`,
    );
  }

  /**
   * Records an operation in whose middle the turn breaks off, with what is said of it; nothing where whoever has ended the
   * turn has recorded it.
   */
  async breakOff(
    turn: Turn,
    n: number,
    operation: OperationRecord,
    { entry, outbox, subAgent }: BreakOff,
  ): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with mine as (
          select t.*, a.user_id from turns t join agents a on a.name = t.agent where t.id = ${turn.id} and t.epoch = ${turn.epoch}
        ), ${recordOperations(sql, [operation], "mine")}, sending as (
          ${insertOutbox(sql, outbox, "recorded", turn.id)}
        )
        insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint)
        select user_id, room_id, id, ${n}, 1, ${entry}, ${subAgent ?? null}, sources, taint from mine, recorded
        on conflict do nothing`,
    );
  }

  /** See `commitSteps`. What is queued for a room is handed on in the order in which it stands in the outbox. */
  commit(turn: Turn, ...steps: readonly StepCommit[]): ReturnType<typeof commitSteps> {
    return this.#queueing.run(roomsSpokenIn(steps), () => commitSteps(this.#database, turn, steps));
  }

  /** Ends a turn that did not end by itself, and what it was doing or waiting for. */
  async close(
    turn: Pick<Turn, "id">,
    state: "failed" | "cancelled",
    error: string,
    { outbox = [], ephemeris = [] }: { outbox?: readonly OutboxDraft[]; ephemeris?: readonly LastEntry[] } = {},
  ): Promise<void> {
    const entries = ephemeris.map((last, index) => ({ part: index + 1, ...last }));
    await this.#database.run(
      (sql) => sql`
        with closed as (
          update turns set state = ${state}, error = ${error}, ended_at = now()
          where id = ${turn.id} and state in ('running', 'parked', 'ready') returning *
        ), ${endOperations(sql, "closed", state === "failed" ? "failed" : "interrupted", error)}, ${endWindows(sql, "closed")},
        told as (
          insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint)
          select a.user_id, c.room_id, c.id, ${lastOfAll}, e.part, e.entry, e."subAgent", c.sources, c.taint
          from closed c join agents a on a.name = c.agent,
            jsonb_to_recordset(${sql.json(entries)}) as e(part integer, entry text, "subAgent" text)
          order by e.part
          on conflict do nothing
        )
        ${insertOutbox(sql, outbox, "closed", turn.id)}`,
    );
  }

  /** The turn of the conversation that is at work, and those that wait for a decision or to go on with it. */
  open({ agent, roomId }: Conversation): Promise<OpenTurn[]> {
    return this.#database.run(
      (sql) => sql<OpenTurn[]>`
        select ${sql.unsafe(turnColumns)}, state from turns
        where agent = ${agent} and room_id = ${roomId} and state in ('running', 'parked', 'ready') order by id`,
    );
  }

  /** A turn of the conversation by its number; without one, the last. */
  async shown({ agent, roomId }: Conversation, number: number | undefined): Promise<Turn | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<Turn[]>`
        select ${sql.unsafe(turnColumns)} from turns
        where agent = ${agent} and room_id = ${roomId} and (${number ?? null}::bigint is null or number = ${number ?? null})
        order by id desc limit 1`,
    );
    return row;
  }

  /** Conversations whose open turn belongs to a runner of this name that died before. */
  abandoned(): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        select agent, room_id as "roomId" from turns where state = 'running' and runner = ${this.runner}`,
    );
  }

  /** Conversations with wakes that nobody has taken, or with a decision to go on with, of agents that are not paused. */
  unread(agent?: AgentName): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        select distinct agent, room_id as "roomId" from (
          select agent, room_id from wakes where turn_id is null
          union all select agent, room_id from turns where state = 'ready'
        ) waiting
        where (${agent ?? null}::text is null or agent = ${agent ?? null})
          and agent in (select name from agents where paused_at is null)`,
    );
  }
}
