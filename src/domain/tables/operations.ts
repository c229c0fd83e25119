import type { Database, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { type OperationCall, type OperationRecord, type OperationState, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import type { Seat } from "./windows.ts";

export interface Operation extends Required<Omit<OperationCall, "id" | "n" | "callId" | "subAgent" | "todo">> {
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
  /** See `Question`. */
  readonly askedWall: RoomId | null;
  readonly askedAt: Date | null;
  readonly expiresAt: Date | null;
  /** True if it is too late to decide, by the database's clock. */
  readonly isOverdue: boolean;
  readonly cardRoom: RoomId | null;
  readonly cardKey: string | null;
  /** True if the card stands in another room than the conversation, which is encrypted: it may not say what it is about. */
  readonly isCardSealed: boolean;
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
  /** Place in history at which it began, or its turn. */
  readonly place: number;
  readonly createdAt: Date;
}

export type Decision = "approved" | "denied" | "expired" | "withdrawn";

const operationColumns = `id, key, tool, kind, summary, input, input_hash as "inputHash", agent, room_id as "roomId", by,
  requesters, sub_agent as "subAgent", todo, turn_id as "turnId", n, call_id as "callId", state,
  asked_because as "askedBecause", asked_wall as "askedWall", asked_at as "askedAt", expires_at as "expiresAt",
  coalesce(expires_at <= now(), false) as "isOverdue", card_room as "cardRoom", card_key as "cardKey",
  card_room <> room_id and is_encrypted(room_id) as "isCardSealed", decision, decided_by as "decidedBy", decided_because as "decidedBecause",
  decided_at as "decidedAt", started_at as "startedAt", ended_at as "endedAt", result, error, sources, taint, place,
  created_at as "createdAt"`;

/** Time that people have to decide. */
const expiresAfter = "24 hours";

/** Every call of a tool, by a model or by a person. */
export class Operations {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Numbers for so many operations, which are nobody else's. */
  async numbers(count: number): Promise<number[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ id: number }[]>`
        select nextval(pg_get_serial_sequence('operations', 'id')) as id from generate_series(1, ${count}::integer)`,
    );
    return rows.map(({ id }) => id);
  }

  /**
   * For an operation that is about to be asked for: an id where it has none yet, until when it may be decided (by the database's clock, which
   * judges that), and how many turns of the conversation are parked already.
   */
  async reserve(
    { agent, roomId }: Conversation,
    id?: number,
  ): Promise<{ id: number; expiresAt: Date; parked: number }> {
    const [row] = await this.#database.run(
      (sql) => sql<{ id: number; expiresAt: Date; parked: number }[]>`
        select coalesce(${id ?? null}::bigint, nextval(pg_get_serial_sequence('operations', 'id'))) as id, now() + ${expiresAfter}::interval as "expiresAt", (
          select count(*) from turns where agent = ${agent} and room_id = ${roomId} and state = 'parked') as parked`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /**
   * A message was edited or taken back: turns that work on it, or were caused by agents who did, ask for nothing before
   * they have looked at it again. Returns what they ask for already.
   */
  async requestChanged(eventId: EventId): Promise<Operation[]> {
    await this.#database.run(
      (sql) => sql`
        with open as (
          select id from turns where state = 'running' union all select id from turns where state in ('parked', 'ready')
        )
        update turns set changes = changes + 1 where id in (
          select turn_id from wakes join open on open.id = turn_id where event_id = ${eventId} or chain = ${eventId})`,
    );
    // Read after that: what is asked for from now on was asked for by those who have looked again.
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select ${sql.unsafe(operationColumns)} from operations
        where state = 'asked' and decision is null and turn_id in (
          select w.turn_id from operations o join wakes w on w.turn_id = o.turn_id
          where o.state = 'asked' and (w.event_id = ${eventId} or w.chain = ${eventId}))
        order by id`,
    );
  }

  /**
   * Decides what was asked, and lets the turn that waits for it go on. Returns the conversation to be woken; undefined
   * where there is nothing to decide: somebody was first, or the turn was stopped. The drafts are sent only if it counts.
   */
  async decide(
    id: number,
    decision: Decision,
    by: { readonly userId?: UserId; readonly because?: string | undefined } | undefined,
    outbox: readonly OutboxDraft[] = [],
  ): Promise<Conversation | undefined> {
    const [conversation] = await this.#database.run(
      (sql) => sql<Conversation[]>`
        with decided as (
          update operations set decision = case when ${decision} in ('approved', 'denied') then ${decision} end, decided_by = ${by?.userId ?? null},
            decided_because = ${by?.because ?? null}, decided_at = now(),
            state = case ${decision} when 'denied' then 'refused' when 'withdrawn' then 'refused' when 'expired' then 'expired' else state end,
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
   * Writes down that a person's command begins. Returns false where it was begun before.
   * @param origin the conversation, and what the person was shown
   */
  async begin(record: OperationRecord, origin: Conversation): Promise<boolean> {
    const known = await this.#database.run(
      (sql) => sql`
        with person as (
          select null::bigint as id, ${origin.agent}::text as agent, ${origin.roomId}::text as room_id,
            array[${origin.roomId}]::text[] as sources, '{}'::text[] as taint, place_now() as place
          where not exists (select 1 from operations where key = ${record.key})
        ), ${recordOperations(sql, [record], "person")}
        select from operations where key = ${record.key}`,
    );
    return known.length === 0;
  }

  /** The operation with this key, if it is written down. */
  withKey(key: string): Promise<Operation | undefined> {
    return this.#one((sql) => sql`key = ${key}`);
  }

  find(id: number): Promise<Operation | undefined> {
    return this.#one((sql) => sql`id = ${id}`);
  }

  /** The agent's operation of this number, where everybody who hears the agent here may read what it was made from. */
  shown({ agent, here, owner }: Seat, id: number): Promise<Operation | undefined> {
    return this.#one(
      (sql) => sql`id = ${id} and agent = ${agent}
        and may_show((select audience_of(${here}, ${owner})), ${here}, sources || room_id, ${owner}, place)`,
    );
  }

  /** Reads the operation of a step; where the step has asked anew with another input, the newer one. */
  ofStep(turnId: number, n: number): Promise<Operation | undefined> {
    return this.#one((sql) => sql`turn_id = ${turnId} and n = ${n} order by id desc limit 1`);
  }

  /** The one whose card this event is. */
  withCard(eventId: EventId): Promise<Operation | undefined> {
    return this.#one((sql) => sql`card_key = (select key from outbox where event_id = ${eventId})`);
  }

  /** True if another card with the operation's number stands in the room, from before the database was restored. */
  async hasNamesake({ id, cardKey }: Operation, roomId: RoomId): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        select 1 from events e join members m on m.room_id = e.room_id and m.user_id = e.sender and m.kind <> 'human'
        where e.room_id = ${roomId} and e.type = 'm.room.message'
          and coalesce(e.original, e.content)->'org.clevernet.operation' = to_jsonb(${id}::bigint)
          and coalesce(e.original, e.content)->>'org.clevernet.key' is distinct from ${cardKey}
        limit 1`,
    );
    return rows.length > 0;
  }

  /** The last of a conversation, or of all; the newest comes last. */
  newest(conversation: Conversation | undefined, limit: number): Promise<Operation[]> {
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select * from (
          select ${sql.unsafe(operationColumns)} from operations
          where ${conversation ? sql`agent = ${conversation.agent} and room_id = ${conversation.roomId}` : sql`true`}
          order by id desc limit ${limit}
        ) recent order by id`,
    );
  }

  /** Reads the operations that the turns of a conversation carry out, or wait for. */
  open({ agent, roomId }: Conversation): Promise<Operation[]> {
    return this.#database.run(
      (sql) => sql<Operation[]>`
        select ${sql.unsafe(operationColumns)} from operations
        where agent = ${agent} and room_id = ${roomId} and state in ('asked', 'running') and by = 'model' order by id`,
    );
  }

  /** Finds the operations that were asked for and not decided in time. */
  findOverdue(): Promise<Operation[]> {
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
