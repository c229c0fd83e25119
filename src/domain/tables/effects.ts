import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { WakeReason } from "../../base/prompt/types.ts";
import type { StoredEvent } from "./events.ts";
import { type Memory, rememberEvents, rememberSteps } from "./interactions.ts";
import type { Media } from "./media.ts";
import { type OperationRecord, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft, type Queued, queuedColumns } from "./outbox.ts";
import { insertProjections, type Projection } from "./projection.ts";
import { noticeRestore } from "./restores.ts";
import { insertSealed, type SealedEvent } from "./sealed-events.ts";

export interface WakeDraft {
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly reason: WakeReason;
  /** Unique for what happened: the same wake is stored once. */
  readonly key: string;
  readonly eventId?: EventId;
  readonly position?: number;
  readonly requester?: UserId;
  /** Root of the chain: the human event that everything goes back to. */
  readonly chain?: string;
  /** An LMML element that the agent is shown with the turn, and that stays in its record. */
  readonly note?: string;
  /** Sources of the note, as `may_read` names them: who may not read them may not read the note. */
  readonly sources?: readonly RoomId[];
  /** Untrusted texts among that. */
  readonly taint?: readonly string[];
  /** Place in history from which the note is, where it was not made with the wake. */
  readonly place?: number;
}

/** All that routing one event changes. */
export interface Effects extends Projection {
  /** The event came encrypted, and says this. */
  readonly unsealed?: {
    readonly type: string;
    readonly content: Json;
    readonly replaces: EventId | null;
    /** Digest of its ciphertext. */
    readonly cipher: string;
  };
  /** The event is encrypted, and its key has not come. */
  readonly sealed?: Pick<SealedEvent, "sessionId" | "userId" | "reason">;
  /** The event is encrypted, and will never be read. */
  readonly isUnreadable?: boolean;
  /** Memory that agents have of the event. */
  readonly memory?: Memory | undefined;
  /** The event carries a file; a pending one is fetched. */
  readonly media?: Media;
  readonly wakes?: readonly WakeDraft[];
  /** The event is an agent's: its wakes spend the chain's budget. */
  readonly spendsChain?: string;
  readonly outbox?: readonly OutboxDraft[];
  /** Said instead of that in the event's room, where somebody is there who may not read what the operation has shown. */
  readonly unsaid?: readonly OutboxDraft[];
  /** The event is the echo of the outbox row with this key. */
  readonly echoOf?: string;
  /** The event is a command, by which somebody had this done; they were shown what these sources hold. */
  readonly operation?: OperationRecord & {
    readonly agent: AgentName;
    readonly sources: readonly RoomId[];
    /** Memories that the agent keeps of it. */
    readonly kept?: readonly Memory[] | undefined;
    /** Those who saw what stood there when it began, as `audience_of` names them. */
    readonly audience: readonly UserId[];
  };
}

/** Agent-to-agent turns that one human event may cause in all. */
export const chainBudget = 6;

/**
 * Part of a statement, its last table is `woken`: stores the given wakes for a row of the table or expression `once`,
 * and no more of them than the chain that they spend, if they do, has room for. A second time it stores and spends nothing.
 */
export const insertWakes = (sql: Sql, wakes: readonly WakeDraft[], once: string, spends: string | undefined) => {
  const spent = sql`spent as (
    insert into chains (root, spent) select ${spends ?? ""}, ${wakes.length} from ${sql(once)}
    where not exists (select 1 from wakes where key = any (${wakes.map(({ key }) => key)}::text[]))
    on conflict (root) do update set spent = chains.spent + excluded.spent
    returning ${chainBudget} - (spent - ${wakes.length}) as most
  ),`;
  return sql`${spends === undefined ? sql`` : spent} woken as (
    insert into wakes (key, agent, room_id, reason, event_id, position, requester, chain, note, sources, taint, place)
    select w.key, w.agent, w."roomId", w.reason, w."eventId", w.position, w.requester, w.chain, w.note,
      coalesce(w.sources, '{}'), coalesce(w.taint, '{}'), coalesce(w.place, place_now())
    from ${sql(spends === undefined ? once : "spent")}, rows from (
      jsonb_to_recordset(${sql.json(wakes as unknown as Json)}) as (key text, agent text,
      "roomId" text, reason text, "eventId" text, position float8, requester text, chain text, note text,
      sources text[], taint text[], place float8)) with ordinality
      as w(key, agent, "roomId", reason, "eventId", position, requester, chain, note, sources, taint, place, n)
    ${spends === undefined ? sql`` : sql`where w.n <= most`}
    on conflict (key) do nothing
    returning agent, room_id as "roomId"
  )`;
};

/** Consequences of an event with which others go on. */
export interface Settled {
  /** Conversations that were woken. */
  readonly woken: readonly Conversation[];
  /** Rows that are to be sent, but for the answer of an operation, if there are any. */
  readonly queued: Queued | undefined;
}

/**
 * Marks an event as routed together with everything that follows from it, in one statement. A second call for the same
 * event changes nothing.
 */
export async function settle(database: Database, event: StoredEvent, effects: Effects): Promise<Settled> {
  const {
    echoOf,
    media,
    memory,
    operation,
    outbox = [],
    sealed,
    shownChars,
    spendsChain,
    isUnreadable,
    unsaid = [],
    unsealed,
    wakes = [],
  } = effects;
  const isHere = ({ roomId }: OutboxDraft): boolean => operation !== undefined && roomId === event.roomId;
  const [here, elsewhere] = [outbox.filter(isHere), outbox.filter((draft) => !isHere(draft))];
  const [row] = await database.run((sql) => {
    const parts = [
      sql`routed as (
        update events set routed_at = now(), shown = ${shownChars !== undefined},
          number = case when ${shownChars !== undefined} then (select last_number(${event.roomId})) + 1 end,
          media = ${media ? sql.json(media as unknown as Json) : null}::jsonb,
          media_after = case when ${media?.state === "pending"} then now() end${
            unsealed
              ? sql`, type = ${unsealed.type}, replaces = ${unsealed.replaces}, cipher = ${unsealed.cipher},
          content = case when redacted_at is null then ${sql.json(unsealed.content)}::jsonb else content end`
              : sql``
          }
        where seq = ${event.seq} and routed_at is null returning seq, received_at
      )`,
      (unsealed || isUnreadable) && sql`, opened as (delete from sealed_events where event_id = ${event.eventId})`,
      sealed && insertSealed(sql, { ...sealed, eventId: event.eventId, roomId: event.roomId }),
      ...insertProjections(sql, event.roomId, [{ event, effects }], "routed"),
      memory && sql`, ${rememberEvents(sql, [{ eventId: event.eventId, memory }], "routed", echoOf)}`,
      wakes.length > 0 && sql`, ${insertWakes(sql, wakes, "routed", spendsChain)}`,
      echoOf !== undefined &&
        sql`, echoed as (
        update outbox set state = 'sent', event_id = ${event.eventId}, wire = null, settled_at = now()
        where key = ${echoOf} and sender = ${event.sender} and state = 'pending'
      ), ${noticeRestore(sql, event, echoOf)}`,
      operation &&
        sql`, commanded as (
        select null::bigint as id, ${operation.agent}::text as agent, ${event.roomId}::text as room_id, '{}'::text[] as taint,
          array[${event.sender}] as requesters,
          array(select jsonb_array_elements_text(${sql.json([...operation.sources])})) as sources, place_now() as place
        from routed
      ), ${recordOperations(sql, [operation], "commanded")}`,
      operation?.kept?.length && sql`, ${rememberSteps(sql, operation.kept, "commanded")}`,
      operation &&
        here.length > 0 &&
        sql`, heard as (
        select may_hear(${event.roomId}, ${event.roomId}, ${[...operation.audience]}::text[],
          array(select jsonb_array_elements_text(${sql.json([...operation.sources])})), owner) as may
        from routed, agents where name = ${operation.agent}
      ), allowed as (select 1 from heard where may), forbidden as (select 1 from heard where not may),
      saying as (${insertOutbox(sql, here, "allowed")}), saying_instead as (${insertOutbox(sql, unsaid, "forbidden")})`,
      elsewhere.length > 0 && sql`, sending as (${insertOutbox(sql, elsewhere, "routed")})`,
    ].filter((part) => typeof part === "object");
    return sql<(Pick<Settled, "woken"> & Pick<Queued, "fresh" | "before">)[]>`with ${parts} select
      ${elsewhere.length > 0 ? sql`${queuedColumns(sql, elsewhere)},` : sql``}
      ${echoOf === undefined ? sql`` : sql`(select count(number) from renumbered) as renumbered,`}
      ${wakes.length > 0 ? sql`(select coalesce(jsonb_agg(to_jsonb(woken)), '[]') from woken)` : sql`'[]'::jsonb`} as woken`;
  });
  if (!row) throw new Error("a query without a table gave no row");
  const { woken, fresh, before } = row;
  return { woken, queued: elsewhere.length > 0 ? { drafts: elsewhere, fresh, before } : undefined };
}
