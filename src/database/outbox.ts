import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Database, Json, Sql } from "./connection.ts";
import { type Proof, stillHeld } from "./shards.ts";

/**
 * `message` and `reaction` are room events with a frozen content; `file` is a text and `media` any file, uploaded first
 * (see `Uploads`); `join` and `leave` may carry a reason.
 */
type OutboxKind = "message" | "file" | "media" | "reaction" | "join" | "leave" | "profile";

export interface OutboxDraft {
  /** Unique for the thing to send; transaction id towards the homeserver, and our content key in the event. */
  readonly key: string;
  readonly roomId: RoomId;
  readonly sender: UserId;
  readonly kind: OutboxKind;
  readonly content: Json;
  /** Key of an earlier row for the same room that this one relates to: the event's id is filled in when it is sent. */
  readonly about?: string | undefined;
}

export interface OutboxRow extends Omit<OutboxDraft, "about"> {
  readonly id: number;
  readonly about: string | null;
  readonly turnId: number | null;
  readonly attempts: number;
  /** The first attempt is longer ago than the homeserver remembers transaction ids. */
  readonly forgotten: boolean;
}

/** Part of a statement: queues the given drafts, once for each row of the table or expression `once`. */
export const insertOutbox = (
  sql: Sql,
  drafts: readonly OutboxDraft[],
  once: string,
  turnId: number | null = null,
) => sql`
  insert into outbox (key, room_id, sender, kind, content, about, turn_id)
  select o.key, o."roomId", o.sender, o.kind, o.content, o.about, ${turnId}::bigint
  from ${sql(once)}, rows from (jsonb_to_recordset(${sql.json(drafts as unknown as Json)})
    as (key text, "roomId" text, sender text, kind text, content jsonb, about text)) with ordinality
    as o(key, "roomId", sender, kind, content, about, n)
  order by o.n
  on conflict (key) do nothing
  returning room_id`;

interface ChainOrigin {
  readonly chain: string | null;
  readonly requester: UserId | null;
}

/** Homeservers keep transaction ids of a device for 24 hours; an hour of that is left as a margin. */
const remembered = "23 hours";

export class Outbox {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async add(drafts: readonly OutboxDraft[]): Promise<void> {
    await this.#database.run((sql) => sql`with once as (select 1) ${insertOutbox(sql, drafts, "once")}`);
  }

  async roomsWithPending(): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`select distinct room_id as "roomId" from outbox where state = 'pending'`,
    );
    return rows.map((row) => row.roomId);
  }

  /** What waits to be sent into the room, oldest first, marked as being tried now; nothing where `proof` is void by now. */
  take(roomId: RoomId, limit: number, proof?: Proof): Promise<OutboxRow[]> {
    return this.#database.run(
      (sql) => sql<OutboxRow[]>`
        with tried as (
          update outbox set attempts = attempts + 1, first_tried_at = coalesce(first_tried_at, now())
          where id in (select id from outbox where room_id = ${roomId} and state = 'pending' order by id limit ${limit})
            ${proof ? sql`and ${stillHeld(sql, proof)}` : sql``}
          returning *
        )
        select id, key, room_id as "roomId", sender, kind, content, about, turn_id as "turnId", attempts,
          first_tried_at < now() - ${remembered}::interval as forgotten
        from tried order by id`,
    );
  }

  async sent(id: number, eventId: EventId | undefined): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update outbox set state = 'sent', event_id = coalesce(${eventId ?? null}, event_id), settled_at = now()
        where id = ${id} and state = 'pending'`,
    );
  }

  /** The event that the room's row with this key has become; undefined where it was given up. */
  async eventOf(roomId: RoomId, key: string): Promise<EventId | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ eventId: EventId | null }[]>`
        select event_id as "eventId" from outbox where key = ${key} and room_id = ${roomId} and state = 'sent'`,
    );
    return row?.eventId ?? undefined;
  }

  /** Gives up for good. `told` is what the agent finds in its ephemeris. */
  async failed(row: OutboxRow, error: string, told: string | null): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with given_up as (
          update outbox set state = 'failed', error = ${error}, settled_at = now()
          where id = ${row.id} and state = 'pending' returning id, room_id, turn_id, sender
        )
        insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources)
        select sender, room_id, turn_id, -id, 1, ${told}, array[room_id] from given_up
        where turn_id is not null and ${told}::text is not null
        on conflict do nothing`,
    );
  }

  /** Whether the row's event has come back as an echo, whatever we believe about the sending. */
  async echoOf(row: OutboxRow): Promise<EventId | undefined> {
    const [found] = await this.#database.run(
      (sql) => sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from events
        where room_id = ${row.roomId} and sender = ${row.sender} and content->>'org.clevernet.key' = ${row.key} limit 1`,
    );
    return found?.eventId;
  }

  /** The chain to which the turn belongs that sent an event; `requester`: for whom the wake acted that began it, if one did. */
  async originOf(key: string, sender: UserId): Promise<ChainOrigin | undefined> {
    const [found] = await this.#database.run(
      (sql) => sql<ChainOrigin[]>`
        select t.chain, w.requester from outbox o join turns t on t.id = o.turn_id left join wakes w on w.key = t.chain
        where o.key = ${key} and o.sender = ${sender}`,
    );
    return found;
  }
}
