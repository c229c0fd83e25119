import type { WakeReason } from "../context/types.ts";
import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import type { Conversation } from "./routing.ts";
import { commitSteps, Fenced, type Step, type StepCommit } from "./steps.ts";
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
  readonly taint: readonly string[];
  /** The thread in which the event stands. */
  readonly threadId: EventId | null;
}

/** A turn that was just taken. */
export interface ClaimedTurn extends Turn {
  /** What a turn that was opened has taken; null for one that was taken over. */
  readonly wakes: readonly TakenWake[] | null;
}

const turnColumns = `id, agent, room_id as "roomId", number, reason, epoch, chain, sources, requesters, taint, started_at as "startedAt"`;

const wakeColumns = `w.id, w.reason, w.event_id as "eventId", w.requester, w.note, w.taint,
  case when e.content->'m.relates_to'->>'rel_type' = 'm.thread' then e.content->'m.relates_to'->>'event_id' end as "threadId"`;

/** Events that one turn takes at the most. */
const eventsPerTurn = 10;

export class Turns {
  readonly #database: Database;
  /** Names the process in the rows it works on. */
  readonly runner: string;

  constructor(database: Database, runner: string) {
    this.#database = database;
    this.runner = runner;
  }

  /**
   * Takes the conversation's open turn over (its epoch rises), or opens one for the oldest unread wakes. `idle`: there
   * is nothing to do. `busy`: the agent works in as many conversations as it may, or somebody else has just opened a
   * turn in this one.
   */
  async claim({ agent, roomId }: Conversation, maxConcurrent: number): Promise<ClaimedTurn | "idle" | "busy"> {
    const [row] = await this.#database.run(
      (sql) => sql<(ClaimedTurn & { busy: boolean })[]>`
        with resumed as (
          update turns set epoch = epoch + 1, runner = ${this.runner}
          where agent = ${agent} and room_id = ${roomId} and state = 'running' returning *
        ), unread as (
          select * from wakes
          where agent = ${agent} and room_id = ${roomId} and turn_id is null and not exists (select 1 from resumed)
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
          where exists (select 1 from unread) and not exists (select 1 from opened)`,
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

  /** Marks a step that must not be repeated as begun. */
  async begin(turn: Turn, n: number, name: string): Promise<void> {
    const rows = await this.#database.run(
      (sql) => sql`
        insert into steps (turn_id, n, name, state)
        select id, ${n}, ${name}, 'started' from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running'
        on conflict (turn_id, n) do update set name = steps.name
        returning n`,
    );
    if (rows.length === 0) throw new Fenced(`turn ${turn.id} is no longer ours`);
  }

  /** See `commitSteps`. */
  commit(turn: Turn, ...steps: readonly StepCommit[]): Promise<Conversation[]> {
    return commitSteps(this.#database, turn, steps);
  }

  /** Ends a turn that did not end by itself; its outbox rows may still carry a notice for the people. */
  async close(
    turn: Pick<Turn, "id">,
    state: "failed" | "cancelled",
    error: string,
    notice: readonly OutboxDraft[] = [],
  ): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with closed as (
          update turns set state = ${state}, error = ${error}, ended_at = now() where id = ${turn.id} and state = 'running'
          returning id, agent, room_id
        ), ${endWindows(sql, "closed")}
        ${insertOutbox(sql, notice, "closed", turn.id)}`,
    );
  }

  async running({ agent, roomId }: Conversation): Promise<Turn | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<Turn[]>`
        select ${sql.unsafe(turnColumns)} from turns where agent = ${agent} and room_id = ${roomId} and state = 'running'`,
    );
    return row;
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

  /** Conversations with wakes that nobody has taken, of agents that are not paused. */
  unread(agent?: AgentName): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        select distinct agent, room_id as "roomId" from wakes
        where turn_id is null and (${agent ?? null}::text is null or agent = ${agent ?? null})
          and agent in (select name from agents where paused_at is null)`,
    );
  }
}
