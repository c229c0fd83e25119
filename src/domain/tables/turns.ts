import type { Database } from "../../adapters/database/connection.ts";
import { isBeforeStart, sessionLives } from "../../adapters/database/shards.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { type AgentName, type EventId, type RoomId, secret, type UserId } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { WakeReason } from "../../base/prompt/types.ts";
import { type AgentRecord, agentRecords } from "./agents.ts";
import { commitSteps } from "./commit-steps.ts";
import { type OperationRecord, recordOperations } from "./operation-record.ts";
import { hasUnknownAnswer } from "./restores.ts";
import { byUrgency } from "./silences.ts";
import { Fenced, roomsSpokenIn, type Step, type StepCommit } from "./steps.ts";
import { type BreakOff, breakOff, closeTurn, type LastWords } from "./turn-end.ts";

export interface Turn {
  readonly id: number;
  /** Random name: no other turn has it, not even a turn with the same id after a restore of the database. */
  readonly salt: string;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  /** Number that the agent is shown as `turnId`: rises by one with each turn of the agent. */
  readonly number: number;
  readonly reason: WakeReason;
  readonly epoch: number;
  readonly chain: string | null;
  readonly sources: readonly RoomId[];
  /** People for whom it works; see `engine/turn/turn.ts`. */
  readonly requesters: readonly UserId[];
  /** Untrusted texts that it was shown: user ids, and paths of files. */
  readonly taint: readonly string[];
  /** The humans who were there at every look so far; null before the first. */
  readonly audience: readonly UserId[] | null;
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
  /** True if somebody in the audience may not read the note. */
  readonly isWithheld: boolean;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  /** The thread in which the event stands. */
  readonly threadId: EventId | null;
  /** True if the event was redacted. */
  readonly isRedacted: boolean;
}

/** A turn that was just taken. */
export interface ClaimedTurn extends Turn {
  /** Wakes that a turn has taken when it was opened; null for one that was taken over, or goes on with a decision. */
  readonly wakes: readonly TakenWake[] | null;
  /** True if another process has worked on it, or its wakes are older than this process: these are taken without others. */
  readonly isInherited: boolean;
  /** The agent as it is now. */
  readonly record: AgentRecord;
}

/** A turn that has not ended. */
export interface OpenTurn extends Turn {
  readonly state: "running" | "parked" | "ready";
  /** Session of the process that works on it, or did so last. */
  readonly runner: string;
}

const turnColumns = `id, salt, agent, room_id as "roomId", number, reason, epoch, chain, sources, requesters, taint, audience, started_at as "startedAt"`;

const wakeColumns = `w.id, w.reason, w.event_id as "eventId", w.requester, w.note, w.sources, w.taint,
  w.note is not null and exists (select 1 from agents a where a.name = w.agent
    and not may_show(audience_of(w.room_id, a.owner), w.room_id, w.sources || w.room_id, a.owner, w.place)) as "isWithheld",
  case when e.content->'m.relates_to'->>'rel_type' = 'm.thread' then e.content->'m.relates_to'->>'event_id' end as "threadId",
  e.redacted_at is not null as "isRedacted"`;

/** Events that one turn takes at the most. */
const eventsPerTurn = 10;

interface ClaimRow extends Omit<ClaimedTurn, "id"> {
  readonly id: number | null;
  readonly isElsewhere: boolean;
  readonly isWaiting: boolean;
}

export class Turns {
  readonly #database: Database;
  readonly #queueing = new InTurn<RoomId>();
  /** Of this process; see `Leases`. */
  readonly session: string;

  constructor(database: Database, session: string) {
    this.#database = database;
    this.session = session;
  }

  /**
   * Takes a turn of the conversation: the open one of this session, or of one that lives no more (the epoch rises); or
   * one that was parked and has its decision (the same); or a new one for the oldest unread wakes. `idle`: there is
   * nothing to do. `elsewhere`: there is, but another process works in the conversation. `busy`: somebody else has just
   * opened a turn there, or the agent is paused, or works in as many conversations as it may.
   *
   * Claims for one agent wait for each other at a lock of their own: at the agent's row a waiting statement that updates it
   * would deadlock. A statement's snapshot is from before its wait, so it reads all that others may have changed again: by
   * a lock, or in `may_open_turn` by a new snapshot.
   */
  async claim(
    { agent, roomId }: Conversation,
    maxConcurrent: number,
  ): Promise<ClaimedTurn | "idle" | "elsewhere" | "busy"> {
    const [row] = await this.#database.run(
      (sql) => sql<ClaimRow[]>`
        with line as materialized (
          select pg_advisory_xact_lock(hashtextextended(${`claims of ${agent}`}, 0))
        ), agent as (
          select name from line, agents where name = ${agent} and paused_at is null and deleted_at is null
        ), open as (
          select * from turns
          where agent = ${agent} and room_id = ${roomId} and state = 'running' and exists (select 1 from agent)
          for update
        ), free as (
          select id, runner from open where runner = ${this.session} or not ${sessionLives(sql, "open.runner")}
        ), ready as (
          select id, runner from turns
          where agent = ${agent} and room_id = ${roomId} and state = 'ready' and not exists (select 1 from open)
            and exists (select 1 from agent) order by id limit 1 for update
        ), first as (
          select *, ${isBeforeStart(sql, "created_at", this.session)} as is_inherited from wakes
          where agent = ${agent} and room_id = ${roomId} and turn_id is null
            and not exists (select 1 from open) and not exists (select 1 from ready) and exists (select 1 from agent)
          order by id limit ${eventsPerTurn} for update
        ), unread as (
          select * from first where is_inherited = (select bool_or(is_inherited) from first)
        ), admitted as (
          update agents set turns = turns + (select count(*) from (select 1 from unread limit 1) new), last_turn_at = now()
          where name = ${agent} and paused_at is null and deleted_at is null
            and (exists (select 1 from ready) or exists (select 1 from unread)) and may_open_turn(name, ${roomId}, ${maxConcurrent})
          returning turns
        ), resumed as (
          update turns set epoch = epoch + 1, runner = ${this.session}, state = 'running', reason = case when state = 'ready' then 'approval' else reason end
          where id in (select id from free union all select ready.id from ready, admitted)
          returning *
        ), opened as (
          insert into turns (agent, room_id, salt, number, reason, runner, requesters, chain)
          select ${agent}, ${roomId}, ${secret(8)}, admitted.turns, (select reason from unread order by ${byUrgency(sql)}, id limit 1), ${this.session},
            (select coalesce(array_agg(distinct requester) filter (where requester is not null), '{}') from unread),
            (select chain from unread order by (chain = event_id) desc nulls last, id desc limit 1)
          from admitted where exists (select 1 from unread) returning *
        ), taken as (
          update wakes set turn_id = opened.id from opened where wakes.id in (select id from unread)
        ), conversation as (
          insert into conversations (agent, room_id) select agent, room_id from opened on conflict do nothing
        ), claimed as (
          select ${sql.unsafe(turnColumns)}, null::jsonb as wakes, (
            select p.runner from (table free union all table ready) p where p.id = resumed.id) <> ${this.session}
            or exists (select 1 from wakes where turn_id = resumed.id and ${isBeforeStart(sql, "created_at", this.session)})
            as "isInherited" from resumed
          union all select ${sql.unsafe(turnColumns)}, (
            select jsonb_agg(to_jsonb(t) order by t.id) from (select ${sql.unsafe(wakeColumns)}
              from unread w left join events e on e.event_id = w.event_id) t), (select bool_or(is_inherited) from unread)
          from opened
        ), waiting as (
          select exists (select 1 from wakes where agent = ${agent} and room_id = ${roomId} and turn_id is null)
            or exists (select 1 from turns where agent = ${agent} and room_id = ${roomId} and state = 'ready') as "isWaiting"
          where not exists (select 1 from claimed)
        )
        select claimed.*, "isWaiting", exists (select 1 from open) as "isElsewhere",
          case when claimed.id is not null then (select to_jsonb(r) from (${agentRecords(sql, agent)}) r) end as record
        from (select 1) always left join claimed on true left join waiting on true`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    const { isElsewhere, id, isWaiting, ...turn } = row;
    if (id !== null) return { ...turn, id };
    if (!isWaiting) return "idle";
    return isElsewhere ? "elsewhere" : "busy";
  }

  /**
   * Returns the wakes that the turn has taken so far. With `takesMore` it first takes those that came since, up to its
   * limit. A human's event begins a new chain also for a turn that an agent caused.
   */
  async absorb(turn: Turn, { takesMore }: { takesMore: boolean }): Promise<TakenWake[]> {
    return this.#database.run(
      (sql) => sql<TakenWake[]>`
        with before as (
          select * from wakes where turn_id = ${turn.id}
        ), fresh as (
          select w.* from wakes w
          where ${takesMore} and w.agent = ${turn.agent} and w.room_id = ${turn.roomId} and w.turn_id is null
            and exists (select 1 from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running' and reason <> 'default mode')
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
        from (table before union all table fresh) w left join events e on e.event_id = w.event_id order by w.id`,
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
      (sql) => sql<{ isLive: boolean }[]>`
        with live as (
          select * from turns where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running'
        ), begun as (
          insert into steps (turn_id, n, name, state) select id, ${n}, ${name}, 'started' from live
          on conflict (turn_id, n) do update set state = 'started' where steps.state = 'asked'
        ), ${recordOperations(sql, [operation], "live")}
        select exists (select 1 from live) as "isLive"`,
    );
    if (!row?.isLive) throw new Fenced(`turn ${turn.id} is no longer ours`);
  }

  /** Parks a turn again, since its question is still open; if a decision came meanwhile, the turn is ready. */
  async park(turn: Turn, operationKey: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update turns set state = case when exists (
          select 1 from operations where key = ${operationKey} and state = 'asked' and decision is null) then 'parked' else 'ready' end
        where id = ${turn.id} and epoch = ${turn.epoch} and state = 'running'`,
    );
  }

  /** See `breakOff`. */
  breakOff(turn: Turn, broken: BreakOff): Promise<void> {
    return breakOff(this.#database, turn, broken);
  }

  /** See `hasUnknownAnswer`. */
  hasUnknownAnswer(turn: Turn, userId: UserId): Promise<boolean> {
    return hasUnknownAnswer(this.#database, turn, userId);
  }

  /** See `commitSteps`. Rows for a room are handed on in their order in the outbox. */
  commit(turn: Turn, ...steps: readonly StepCommit[]): ReturnType<typeof commitSteps> {
    return this.#queueing.run(roomsSpokenIn(steps), () => commitSteps(this.#database, turn, steps));
  }

  /** See `closeTurn`. */
  close(turn: Pick<Turn, "id">, state: "failed" | "cancelled", error: string, said: LastWords = {}): Promise<void> {
    return closeTurn(this.#database, turn, { state, error }, said);
  }

  /** Finds the conversation's turn at work, and its turns that wait for a decision, or to go on after one. */
  open({ agent, roomId }: Conversation): Promise<OpenTurn[]> {
    return this.#database.run(
      (sql) => sql<OpenTurn[]>`
        select ${sql.unsafe(turnColumns)}, state, runner from turns
        where agent = ${agent} and room_id = ${roomId} and state in ('running', 'parked', 'ready') order by id`,
    );
  }

  /** A turn of the conversation by its number, without one the last; `sources` are all that were ever rendered in it. */
  async findTurn({ agent, roomId }: Conversation, number: number | undefined): Promise<Turn | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<Turn[]>`
        select ${sql.unsafe(turnColumns.replace("sources", "sources || former_sources as sources"))} from turns
        where agent = ${agent} and room_id = ${roomId} and (${number ?? null}::bigint is null or number = ${number ?? null})
        order by id desc limit 1`,
    );
    return row;
  }

  /**
   * Finds conversations of unpaused agents that have work and no worker, the longest waiting first: they have wakes that
   * nobody has taken, a decision, or the turn of a dead process. With `agent`, only this agent's.
   */
  findWaiting(agent?: AgentName): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        with elsewhere as (
          select agent, room_id, ${sessionLives(sql, "turns.runner")} as lives from turns
          where state = 'running' and runner <> ${this.session}
        )
        select agent, room_id as "roomId" from (
          select agent, room_id, created_at as since from wakes where turn_id is null
          union all select agent, room_id, started_at from turns where state = 'ready'
          union all select agent, room_id, '-infinity' from elsewhere where not lives
        ) waiting
        where (${agent ?? null}::text is null or agent = ${agent ?? null})
          and agent in (select name from agents where paused_at is null) and (agent, room_id) not in (select agent, room_id from elsewhere where lives)
        group by agent, room_id order by min(since)`,
    );
  }
}
