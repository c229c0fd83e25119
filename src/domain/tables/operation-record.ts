import type { Json, Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

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
  /** Equal for one call, however often it is run. */
  readonly key: string;
  /** Number that it was given beforehand. */
  readonly id?: number;
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
  /** Sub-agents of the turn that called, from the outermost: `planner/clerk`. */
  readonly subAgent?: string;
  /** Number of a todo of the conversation. */
  readonly todo?: number;
}

/** Question to people, and how long it counts. */
export interface Question {
  /** As `Operations.reserve` gave it. */
  readonly id: number;
  readonly askedBecause: string;
  /** Place behind the wall that the reason tells of: a room, a user, or '' for the home of an agent. */
  readonly askedWall?: RoomId | undefined;
  readonly expiresAt: Date;
  readonly cardRoom: RoomId;
  /** Key of the card in the outbox. */
  readonly cardKey: string;
}

/** State of an operation, as it is written down. */
interface Progress {
  readonly key: string;
  readonly state: OperationState;
  /** Text that the caller was told. */
  readonly result?: string;
  /** Why it failed, or was refused. */
  readonly error?: string;
  /** Time that it took so far. */
  readonly milliseconds?: number;
}

type NewOperation = Progress & OperationCall & Partial<Question>;

/** An operation that is recorded for the first time, or, without its call, what has become of a recorded one. */
export type OperationRecord = NewOperation | (Progress & { readonly tool?: never });

/**
 * Part of a statement, after `with` or a comma; its last CTE, `recorded`, has what was written: key, operation (the number), tool,
 * summary, state.
 * @param from the table or CTE whose row they belong to: id (of the turn, null for a person's command), agent, room_id,
 * sources, taint, place
 */
export const recordOperations = (sql: Sql, records: readonly OperationRecord[], from: string) => sql`
  ${records.map(
    (record, index) => sql`${sql(`recorded_${index}`)} as (
    ${record.tool === undefined ? change(sql, record, from) : insert(sql, record, from)}
  ),`,
  )} recorded as (
    select key, id as operation, tool, summary, state from operations where false ${records.map((_, index) => sql`union all table ${sql(`recorded_${index}`)}`)}
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
    turn_id, n, call_id, state, asked_because, asked_wall, asked_at, expires_at, card_room, card_key, started_at, ended_at, result,
    error, sources, taint, place)
  overriding system value
  select coalesce(${record.id ?? null}::bigint, nextval(pg_get_serial_sequence('operations', 'id'))), ${record.key},
    ${record.tool}, ${record.kind}, ${record.summary}, ${sql.json(record.input)}::jsonb, ${record.inputHash}, f.agent, f.room_id,
    case when f.id is null then 'person' else 'model' end, ${[...record.requesters]}::text[], ${record.subAgent ?? null},
    ${record.todo ?? null}::integer, f.id, ${record.n ?? null}::integer, ${record.callId ?? null}, ${record.state},
    ${record.askedBecause ?? null}, ${record.askedWall ?? null}, case when ${record.state === "asked"} then now() end,
    ${record.expiresAt ?? null}::timestamptz, ${record.cardRoom ?? null}, ${record.cardKey ?? null},
    ${startOf(sql, record)}, ${endOf(sql, record)}, ${record.result ?? null}, ${record.error ?? null}, f.sources, f.taint, f.place
  from ${sql(from)} f
  on conflict (key) do nothing
  returning key, id as operation, tool, summary, state`;

/** An operation that has ended stays so, except for what its caller is told of a refusal. */
const change = (sql: Sql, record: OperationRecord, from: string) => sql`
  update operations o set state = ${record.state}, result = ${record.result ?? null}, error = ${record.error ?? null},
    started_at = coalesce(o.started_at, ${startOf(sql, record)}), ended_at = coalesce(o.ended_at, ${endOf(sql, record)}),
    sources = f.sources, taint = f.taint
  from ${sql(from)} f where o.key = ${record.key} and o.state in ('asked', 'running', 'refused', 'expired')
  returning o.key, o.id as operation, o.tool, o.summary, o.state`;

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

/**
 * Part of a statement, after `with` or a comma: people cannot be asked where it was tried, and the turn goes on to ask
 * elsewhere. The CTE `unasked` has the conversations.
 * @param cards the CTE with the keys of cards that may not be sent
 */
export const askElsewhere = (sql: Sql, cards: string) => sql`
  unasked as (
    update operations o set card_room = null, card_key = null
    from ${sql(cards)} c where o.card_key = c.key and o.state = 'asked' and o.decision is null
    returning o.agent, o.room_id, o.turn_id
  ), ${readied(sql)}`;

/**
 * Part of a statement, after `with` or a comma: what people cannot be asked is refused, and its turn can go on. The CTE
 * `unasked` has the conversations.
 * @param cards the CTE with the keys of cards that cannot be sent
 */
export const endUnasked = (sql: Sql, cards: string, why: string) => sql`
  unasked as (
    update operations o set state = 'refused', decided_because = ${why}, ended_at = now()
    from ${sql(cards)} c where o.card_key = c.key and o.state = 'asked' and o.decision is null
    returning o.agent, o.room_id, o.turn_id
  ), ${readied(sql)}`;

const readied = (sql: Sql) => sql`
  readied as (update turns t set state = 'ready' from unasked u where t.id = u.turn_id and t.state = 'parked')`;
