import type { WakeReason } from "../context/types.ts";
import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database, Json, Sql } from "./connection.ts";
import type { StoredEvent } from "./events.ts";
import type { Media } from "./media.ts";
import { type OperationRecord, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";

export interface MemberChange {
  readonly userId: UserId;
  readonly membership: string;
  readonly displayName: string | undefined;
  readonly direct: boolean;
  readonly kind: "human" | "agent" | "bot";
}

interface StateChange {
  readonly type: string;
  readonly content: Json;
  readonly sender: UserId;
}

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
  /** What went into the note, as `may_read` names it: who may not read that may not read the note. */
  readonly sources?: readonly RoomId[];
  /** Untrusted texts among that. */
  readonly taint?: readonly string[];
}

/** All that routing one event changes. */
export interface Effects {
  /** The event is part of what agents see as history; this many characters of it. */
  readonly shownChars?: number;
  /** The event carries a file; a pending one is fetched. */
  readonly media?: Media;
  readonly member?: MemberChange;
  readonly state?: StateChange;
  readonly wakes?: readonly WakeDraft[];
  /** The event is an agent's: its wakes spend the chain's budget. */
  readonly spendsChain?: string;
  readonly outbox?: readonly OutboxDraft[];
  /** The event is the echo of the outbox row with this key. */
  readonly echoOf?: string;
  /** The event is a command, by which somebody had this done; they were shown what these sources hold. */
  readonly operation?: OperationRecord & { readonly agent: AgentName; readonly sources: readonly RoomId[] };
}

export interface Conversation {
  readonly agent: AgentName;
  readonly roomId: RoomId;
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
    insert into wakes (key, agent, room_id, reason, event_id, position, requester, chain, note, sources, taint)
    select w.key, w.agent, w."roomId", w.reason, w."eventId", w.position, w.requester, w.chain, w.note,
      coalesce(w.sources, '{}'), coalesce(w.taint, '{}')
    from ${sql(spends === undefined ? once : "spent")}, rows from (
      jsonb_to_recordset(${sql.json(wakes as unknown as Json)}) as (key text, agent text,
      "roomId" text, reason text, "eventId" text, position float8, requester text, chain text, note text,
      sources text[], taint text[])) with ordinality
      as w(key, agent, "roomId", reason, "eventId", position, requester, chain, note, sources, taint, n)
    ${spends === undefined ? sql`` : sql`where w.n <= most`}
    on conflict (key) do nothing
    returning agent, room_id as "roomId"
  )`;
};

/**
 * Marks an event as routed together with everything that follows from it, in one statement. Returns the
 * conversations that were woken. A second call for the same event changes nothing.
 */
export async function settle(database: Database, event: StoredEvent, effects: Effects): Promise<Conversation[]> {
  const { echoOf, media, member, operation, outbox = [], shownChars, spendsChain, state, wakes = [] } = effects;
  return database.run((sql) => {
    const parts = [
      sql`routed as (
        update events set routed_at = now(), shown = ${shownChars !== undefined},
          media = ${media ? sql.json(media as unknown as Json) : null}::jsonb,
          media_after = case when ${media?.state === "pending"} then now() end
        where seq = ${event.seq} and routed_at is null returning event_id, received_at
      )`,
      shownChars !== undefined &&
        sql`, room as (
        insert into rooms (room_id, shown_events, shown_chars, last_shown_at)
        select ${event.roomId}, 1, ${shownChars}::bigint, received_at from routed
        on conflict (room_id) do update set shown_events = rooms.shown_events + 1,
          shown_chars = rooms.shown_chars + excluded.shown_chars,
          last_shown_at = excluded.last_shown_at
      )`,
      member &&
        sql`, member as (
        insert into members (room_id, user_id, membership, display_name, direct, kind, position, joined_position)
        select ${event.roomId}, ${member.userId}, ${member.membership}, ${member.displayName ?? null},
          ${member.direct}, ${member.kind}, ${event.position}::float8, ${event.position}::float8
        from routed
        on conflict (room_id, user_id) do update set membership = excluded.membership,
          display_name = excluded.display_name, direct = members.direct or excluded.direct, position = excluded.position,
          joined_position = case when members.membership = 'join' and excluded.membership = 'join'
            then members.joined_position else excluded.position end
        where excluded.position >= members.position
      )`,
      state &&
        sql`, state as (
        insert into room_state (room_id, type, content, sender, position)
        select ${event.roomId}, ${state.type}, ${sql.json(state.content)}, ${state.sender}, ${event.position}::float8
        from routed
        on conflict (room_id, type) do update set content = excluded.content, sender = excluded.sender, position = excluded.position
        where excluded.position >= room_state.position
      )`,
      wakes.length > 0 && sql`, ${insertWakes(sql, wakes, "routed", spendsChain)}`,
      echoOf !== undefined &&
        sql`, echoed as (
        update outbox set state = 'sent', event_id = ${event.eventId}, settled_at = now()
        where key = ${echoOf} and sender = ${event.sender} and state = 'pending'
      )`,
      operation &&
        sql`, commanded as (
        select null::bigint as id, ${operation.agent}::text as agent, ${event.roomId}::text as room_id, '{}'::text[] as taint,
          array(select jsonb_array_elements_text(${sql.json([...operation.sources])})) as sources
        from routed
      ), ${recordOperations(sql, [operation], "commanded")}`,
      outbox.length > 0 && sql`, sending as (${insertOutbox(sql, outbox, "routed")})`,
    ].filter((part) => part !== undefined && part !== false);
    return sql<Conversation[]>`with ${parts} ${
      wakes.length > 0
        ? sql`select agent, "roomId" from woken`
        : sql`select agent, room_id as "roomId" from wakes where false`
    }`;
  });
}
