import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database, Json, Sql } from "./connection.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import type { Conversation } from "./routing.ts";

/**
 * - `asked`: waits for a person who may decide, or for its turn to go on with the decision
 * - `refused`: the gate's or a person's no; `failed`: it was tried and told why it cannot be
 * - `interrupted`: its turn was stopped; `unknown`: its process died, and it was not repeated
 */
export type OperationState =
  | "asked"
  | "running"
  | "done"
  | "failed"
  | "refused"
  | "interrupted"
  | "expired"
  | "unknown";

/** A call of a tool, as it is known before it is carried out. */
export interface OperationCall {
  /** The same for the same call, however often it is run. */
  readonly key: string;
  readonly tool: string;
  readonly kind: "read" | "create" | "update" | "delete";
  /** One line. */
  readonly summary: string;
  readonly input: Json;
  /** Of tool and input: an approval counts for nothing else. */
  readonly inputHash: string;
  readonly requesters: readonly UserId[];
  /** Number of the step, and the id under which the agent is shown the call; a person's command has neither. */
  readonly n?: number;
  readonly callId?: string;
  /** Those of the turn's sub-agents who called, from the outermost: `planner/clerk`. */
  readonly subAgent?: string;
  /** Number of a todo of the conversation. */
  readonly todo?: number;
}

/** What is asked of people, and how long it counts. */
export interface Question {
  /** As `Operations.reserve` gave it. */
  readonly id: number;
  readonly askedBecause: string;
  readonly expiresAt: Date;
  readonly cardRoom: RoomId;
  /** Key of the card in the outbox. */
  readonly cardKey: string;
}

/** What an operation has come to. The call may be missing where it stands in its row already. */
export interface OperationRecord extends Partial<OperationCall>, Partial<Question> {
  readonly key: string;
  readonly state: OperationState;
  /** What the caller was told. */
  readonly result?: string;
  /** Why it failed, or was refused. */
  readonly error?: string;
  /** How long it took so far. */
  readonly milliseconds?: number;
}

export interface Operation extends Required<Omit<OperationCall, "n" | "callId" | "subAgent" | "todo">> {
  readonly id: number;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly by: "model" | "person";
  readonly turnId: number | null;
  readonly n: number | null;
  readonly callId: string | null;
  readonly subAgent: string | null;
  readonly todo: number | null;
  readonly state: OperationState;
  readonly askedBecause: string | null;
  readonly askedAt: Date | null;
  readonly expiresAt: Date | null;
  readonly cardRoom: RoomId | null;
  readonly cardKey: string | null;
  readonly decision: "approved" | "denied" | null;
  readonly decidedBy: UserId | null;
  readonly decidedBecause: string | null;
  readonly decidedAt: Date | null;
  readonly startedAt: Date | null;
  readonly endedAt: Date | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  readonly createdAt: Date;
}

export type Decision = "approved" | "denied" | "expired";

const operationColumns = `id, key, tool, kind, summary, input, input_hash as "inputHash", agent, room_id as "roomId", by,
  requesters, sub_agent as "subAgent", todo, turn_id as "turnId", n, call_id as "callId", state,
  asked_because as "askedBecause", asked_at as "askedAt", expires_at as "expiresAt", card_room as "cardRoom",
  card_key as "cardKey", decision, decided_by as "decidedBy", decided_because as "decidedBecause",
  decided_at as "decidedAt", started_at as "startedAt", ended_at as "endedAt", result, error, sources, taint,
  created_at as "createdAt"`;

/**
 * Part of a statement, after `with` or a comma: three CTEs, which write down what operations have come to. What is
 * recorded already is brought up to date, and uses up no id.
 * @param from the table or CTE whose row they belong to: id (of the turn, null for a person's command), agent, room_id,
 * sources, taint
 */
export const recordOperations = (sql: Sql, records: readonly OperationRecord[], from: string) => sql`
  operation_given as (
    select o.*, f.id as turn_id, f.agent, f.room_id, f.sources, f.taint,
      case when o.state not in ('asked', 'running') then now() end as ended_at,
      case when o.state not in ('asked', 'refused', 'expired')
        then now() - make_interval(secs => coalesce(o.milliseconds, 0) / 1000) end as started_at
    from ${sql(from)} f, jsonb_to_recordset(${sql.json(records as unknown as Json)}) as o(key text, state text, tool text,
      kind text, summary text, input jsonb, "inputHash" text, requesters text[], n integer, "callId" text, "subAgent" text,
      todo integer, id bigint, "askedBecause" text, "expiresAt" timestamptz, "cardRoom" text, "cardKey" text,
      result text, error text, milliseconds float8)
  ), operation_known as (
    update operations o set state = g.state, result = g.result, error = g.error,
      started_at = coalesce(o.started_at, g.started_at),
      ended_at = case when g.ended_at is not null then coalesce(o.ended_at, g.ended_at) end,
      sources = g.sources, taint = g.taint,
      input = coalesce(g.input, o.input), input_hash = coalesce(g."inputHash", o.input_hash),
      summary = coalesce(g.summary, o.summary),
      decision = case when coalesce(g."inputHash", o.input_hash) = o.input_hash then o.decision end,
      asked_because = coalesce(g."askedBecause", o.asked_because), expires_at = coalesce(g."expiresAt", o.expires_at),
      card_room = coalesce(g."cardRoom", o.card_room), card_key = coalesce(g."cardKey", o.card_key)
    from operation_given g where o.key = g.key and o.state in ('asked', 'running', 'refused', 'expired')
    returning o.key
  ), operation_new as (
    insert into operations (id, key, tool, kind, summary, input, input_hash, agent, room_id, by, requesters, sub_agent,
      todo, turn_id, n, call_id, state, asked_because, asked_at, expires_at, card_room, card_key, started_at, ended_at,
      result, error, sources, taint)
    overriding system value
    select coalesce(g.id, nextval(pg_get_serial_sequence('operations', 'id'))), g.key, g.tool, g.kind, g.summary, g.input,
      g."inputHash", g.agent, g.room_id, case when g.turn_id is null then 'person' else 'model' end, g.requesters,
      g."subAgent", g.todo, g.turn_id, g.n, g."callId", g.state, g."askedBecause", case when g.state = 'asked' then now() end,
      g."expiresAt", g."cardRoom", g."cardKey", g.started_at, g.ended_at, g.result, g.error, g.sources, g.taint
    from operation_given g
    where g.tool is not null and not exists (select 1 from operations o where o.key = g.key)
    on conflict (key) do nothing
    returning key
  )`;

/**
 * Part of a statement, after `with` or a comma: what a turn was doing, or waiting for, ends with it.
 * @param closed the CTE with the id of the turn
 */
export const endOperations = (sql: Sql, closed: string, state: "failed" | "interrupted", why: string) => sql`
  operations_ended as (
    update operations o set state = ${state}, error = ${why}, ended_at = now()
    from ${sql(closed)} c where o.turn_id = c.id and o.state in ('asked', 'running')
    returning o.key
  )`;

/** Every call of a tool, by a model or by a person. */
export class Operations {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** An id for an operation that is about to be asked for, and how many turns of the conversation are parked already. */
  async reserve({ agent, roomId }: Conversation): Promise<{ id: number; parked: number }> {
    const [row] = await this.#database.run(
      (sql) => sql<{ id: number; parked: number }[]>`
        select nextval(pg_get_serial_sequence('operations', 'id')) as id, (
          select count(*) from turns where agent = ${agent} and room_id = ${roomId} and state = 'parked') as parked`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /**
   * Decides what was asked, and lets the turn that waits for it go on. Returns the conversation to be woken; undefined
   * where there is nothing to decide: somebody was first, or the turn was stopped. The drafts are sent only if it counts.
   */
  async decide(
    id: number,
    decision: Decision,
    by: { readonly userId: UserId; readonly because?: string | undefined } | undefined,
    outbox: readonly OutboxDraft[] = [],
  ): Promise<Conversation | undefined> {
    const [conversation] = await this.#database.run(
      (sql) => sql<Conversation[]>`
        with decided as (
          update operations set decision = nullif(${decision}, 'expired'), decided_by = ${by?.userId ?? null},
            decided_because = ${by?.because ?? null}, decided_at = now(),
            state = case ${decision} when 'denied' then 'refused' when 'expired' then 'expired' else state end,
            ended_at = case when ${decision} <> 'approved' then now() end
          where id = ${id} and state = 'asked' and decision is null
          returning agent, room_id, turn_id
        ), ready as (
          update turns t set state = 'ready' from decided d where t.id = d.turn_id and t.state = 'parked'
        ), sending as (
          ${insertOutbox(sql, outbox, "decided")}
        )
        select agent, room_id as "roomId" from decided`,
    );
    return conversation;
  }

  /**
   * Writes down that a person's command begins. Returns the state in which it was found where it was begun before.
   * @param origin the conversation, and what the person was shown
   */
  async begin(call: OperationCall, origin: Conversation): Promise<OperationState | undefined> {
    const [known] = await this.#database.run(
      (sql) => sql<{ state: OperationState }[]>`
        with person as (
          select null::bigint as id, ${origin.agent}::text as agent, ${origin.roomId}::text as room_id,
            array[${origin.roomId}]::text[] as sources, '{}'::text[] as taint
          where not exists (select 1 from operations where key = ${call.key})
        ), ${recordOperations(sql, [{ ...call, state: "running" }], "person")}
        select state from operations where key = ${call.key}`,
    );
    return known?.state;
  }

  find(id: number): Promise<Operation | undefined> {
    return this.#one((sql) => sql`id = ${id}`);
  }

  withKey(key: string): Promise<Operation | undefined> {
    return this.#one((sql) => sql`key = ${key}`);
  }

  /** The one whose card this event is. */
  withCard(eventId: EventId): Promise<Operation | undefined> {
    return this.#one((sql) => sql`card_key = (select key from outbox where event_id = ${eventId})`);
  }

  /** The last of a conversation, or of all; the newest comes last. */
  last(conversation: Conversation | undefined, limit: number): Promise<Operation[]> {
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select * from (
          select ${sql.unsafe(operationColumns)} from operations
          where ${conversation ? sql`agent = ${conversation.agent} and room_id = ${conversation.roomId}` : sql`true`}
          order by id desc limit ${limit}
        ) recent order by id`,
    );
  }

  /** What the turns of a conversation are doing, or waiting for. */
  open({ agent, roomId }: Conversation): Promise<Operation[]> {
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select ${sql.unsafe(operationColumns)} from operations
        where agent = ${agent} and room_id = ${roomId} and state in ('asked', 'running') and by = 'model' order by id`,
    );
  }

  /** Those that were asked for and not decided in time. */
  overdue(): Promise<Operation[]> {
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select ${sql.unsafe(operationColumns)} from operations
        where state = 'asked' and decision is null and expires_at <= now() order by id limit 100`,
    );
  }

  async #one(where: (sql: Sql) => ReturnType<Sql>): Promise<Operation | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<Operation[]>`select ${sql.unsafe(operationColumns)} from operations where ${where(sql)}`,
    );
    return row;
  }
}
