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

/** What an operation has come to. */
interface Progress {
  readonly key: string;
  readonly state: OperationState;
  /** What the caller was told. */
  readonly result?: string;
  /** Why it failed, or was refused. */
  readonly error?: string;
  /** How long it took so far. */
  readonly milliseconds?: number;
}

type NewOperation = Progress & OperationCall & Partial<Question>;

/** An operation that is recorded for the first time, or, without its call, what has become of a recorded one. */
export type OperationRecord = NewOperation | (Progress & { readonly tool?: never });

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
 * Part of a statement, after `with` or a comma; its last CTE, `recorded`, has the keys of what was written.
 * @param from the table or CTE whose row they belong to: id (of the turn, null for a person's command), agent, room_id,
 * sources, taint
 */
export const recordOperations = (sql: Sql, records: readonly OperationRecord[], from: string) => sql`
  ${records.map(
    (record, index) => sql`${sql(`recorded_${index}`)} as (
    ${record.tool === undefined ? change(sql, record, from) : insert(sql, record, from)}
  ),`,
  )} recorded as (
    select null as key where false ${records.map((_, index) => sql`union all table ${sql(`recorded_${index}`)}`)}
  )`;

/** The time before now at which something began; null for what has not. */
const startOf = (sql: Sql, { milliseconds = 0, state }: OperationRecord) =>
  state === "asked" || state === "refused" || state === "expired"
    ? sql`null::timestamptz`
    : sql`now() - make_interval(secs => ${milliseconds / 1_000}::float8)`;

const endOf = (sql: Sql, { state }: OperationRecord) =>
  state === "asked" || state === "running" ? sql`null::timestamptz` : sql`now()`;

const insert = (sql: Sql, record: NewOperation, from: string) => sql`
  insert into operations (id, key, tool, kind, summary, input, input_hash, agent, room_id, by, requesters, sub_agent, todo,
    turn_id, n, call_id, state, asked_because, asked_at, expires_at, card_room, card_key, started_at, ended_at, result,
    error, sources, taint)
  overriding system value
  select coalesce(${record.id ?? null}::bigint, nextval(pg_get_serial_sequence('operations', 'id'))), ${record.key},
    ${record.tool}, ${record.kind}, ${record.summary}, ${sql.json(record.input)}::jsonb, ${record.inputHash}, f.agent, f.room_id,
    case when f.id is null then 'person' else 'model' end, ${[...record.requesters]}::text[], ${record.subAgent ?? null},
    ${record.todo ?? null}::integer, f.id, ${record.n ?? null}::integer, ${record.callId ?? null}, ${record.state},
    ${record.askedBecause ?? null}, case when ${record.state === "asked"} then now() end,
    ${record.expiresAt ?? null}::timestamptz, ${record.cardRoom ?? null}, ${record.cardKey ?? null},
    ${startOf(sql, record)}, ${endOf(sql, record)}, ${record.result ?? null}, ${record.error ?? null}, f.sources, f.taint
  from ${sql(from)} f
  on conflict (key) do nothing
  returning key`;

/** What has ended stays so, but for what its caller is told of a refusal. */
const change = (sql: Sql, record: OperationRecord, from: string) => sql`
  update operations o set state = ${record.state}, result = ${record.result ?? null}, error = ${record.error ?? null},
    started_at = coalesce(o.started_at, ${startOf(sql, record)}), ended_at = coalesce(o.ended_at, ${endOf(sql, record)}),
    sources = f.sources, taint = f.taint
  from ${sql(from)} f where o.key = ${record.key} and o.state in ('asked', 'running', 'refused', 'expired')
  returning o.key`;

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

/** How long people may think about what they are asked. */
const expiresAfter = "24 hours";

/** Every call of a tool, by a model or by a person. */
export class Operations {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * For an operation that is about to be asked for: an id, until when it may be decided (by the database's clock, which
   * judges that), and how many turns of the conversation are parked already.
   */
  async reserve({ agent, roomId }: Conversation): Promise<{ id: number; expiresAt: Date; parked: number }> {
    const [row] = await this.#database.run(
      (sql) => sql<{ id: number; expiresAt: Date; parked: number }[]>`
        select nextval(pg_get_serial_sequence('operations', 'id')) as id, now() + ${expiresAfter}::interval as "expiresAt", (
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

  /** What a step has come to; where it has asked anew with another input, that. */
  ofStep(turnId: number, n: number): Promise<Operation | undefined> {
    return this.#one((sql) => sql`turn_id = ${turnId} and n = ${n} order by id desc limit 1`);
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
