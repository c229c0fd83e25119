import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { type Memory, rememberAnew } from "./interactions.ts";
import type { Media } from "./media.ts";
import { type EventWords, type Redacted, redactEvent, wordsOf } from "./redact-event.ts";
import { isUnknownAnswer } from "./restores.ts";

/** Way in which an event came to us: pushed by the homeserver, found by a sweep, or read when an agent joined. */
export type EventSource = "push" | "sweep" | "history";

export interface IncomingEvent {
  readonly eventId: EventId;
  readonly roomId: RoomId;
  readonly type: string;
  readonly stateKey: string | undefined;
  readonly sender: UserId;
  readonly sentAt: Date;
  readonly content: Json;
  readonly replaces: EventId | undefined;
  readonly redacts: EventId | undefined;
  /** Place in history where it is known to differ from the order of arrival. */
  readonly position?: number | undefined;
}

export interface StoredEvent {
  readonly seq: number;
  readonly eventId: EventId;
  readonly roomId: RoomId;
  readonly type: string;
  readonly stateKey: string | null;
  readonly sender: UserId;
  readonly sentAt: Date;
  readonly content: Record<string, unknown>;
  readonly replaces: EventId | null;
  readonly redacts: EventId | null;
  readonly position: number;
  readonly source: EventSource;
  readonly editedAt: Date | null;
  /** True if it came encrypted, and was read. */
  readonly isEncrypted: boolean;
  /** State of the file that the event carries. */
  readonly media: Media | null;
  /** By which agents are shown it: counted in its room; null where it is no part of the history. */
  readonly number: number | null;
}

export interface PendingEvent extends StoredEvent {
  /** An edit or a redaction of it has come before it. */
  readonly isOvertaken: boolean;
}

/** Data of the homeserver that cannot be stored as an event. */
export interface Misfit {
  readonly digest: string;
  readonly reason: string;
  readonly raw: Buffer;
}

export const eventColumns = `e.seq, e.event_id as "eventId", e.room_id as "roomId", e.type, e.state_key as "stateKey", e.sender,
  e.sent_at as "sentAt", e.content, e.replaces, e.redacts, e.position, e.source, e.edited_at as "editedAt", e.media, e.number,
  e.cipher is not null as "isEncrypted"`;

/** An agent, as its own events name it. */
interface Speaker {
  readonly name: string;
  readonly userId: UserId;
}

/** Part of a statement: the room's events behind this one; each half has an index of its own. */
const laterThan = (sql: Sql, { position, roomId }: Pick<StoredEvent, "position" | "roomId">) => sql`
  select * from events where room_id = ${roomId} and position > ${position} and shown
  union all select * from events where room_id = ${roomId} and position > ${position} and not shown`;

/** Part of a statement: stores what is new, in the order given; `isRouted`: nothing follows from it, nor is it shown. */
export const insertEvents = (sql: Sql, events: readonly IncomingEvent[], source: EventSource, isRouted = false) => sql`
  insert into events (seq, event_id, room_id, type, state_key, sender, sent_at, content, replaces, redacts, position, source, routed_at)
  select n.seq, e->>'eventId', e->>'roomId', e->>'type', e->>'stateKey', e->>'sender', (e->>'sentAt')::timestamptz, e->'content',
    e->>'replaces', e->>'redacts', coalesce((e->>'position')::float8, n.seq), ${source}, case when ${isRouted} then now() end
  from (
    select nextval('event_seq') as seq, e
    from (select e from jsonb_array_elements(${sql.json(events as unknown as Json)}) with ordinality given(e, n) order by n) ordered
  ) n
  on conflict (event_id) do nothing`;

export class Events {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores what is new, in the order given, in one statement; returns the rooms in which something is new. */
  async store(events: readonly IncomingEvent[], source: EventSource): Promise<RoomId[]> {
    if (events.length === 0) return [];
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`${insertEvents(sql, events, source)} returning room_id as "roomId"`,
    );
    return [...new Set(rows.map((row) => row.roomId))];
  }

  async quarantine(misfits: readonly Misfit[]): Promise<void> {
    for (const { digest, reason, raw } of misfits) {
      await this.#database.run(
        (sql) =>
          sql`insert into quarantine (digest, reason, raw) values (${digest}, ${reason}, ${raw}) on conflict do nothing`,
      );
    }
  }

  async findRoomsWithPending(): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`select distinct room_id as "roomId" from events where routed_at is null`,
    );
    return rows.map((row) => row.roomId);
  }

  async find(eventId: EventId): Promise<StoredEvent | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<StoredEvent[]>`select ${sql.unsafe(eventColumns)} from events e where e.event_id = ${eventId}`,
    );
    return row;
  }

  /** The event that agents are shown in this room under this number. */
  async findNumbered(roomId: RoomId, number: number): Promise<StoredEvent | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<StoredEvent[]>`
        select ${sql.unsafe(eventColumns)} from events e where e.room_id = ${roomId} and e.number = ${number}`,
    );
    return row;
  }

  /** Places of the given events, for those that are known. */
  async positions(eventIds: readonly EventId[]): Promise<Map<EventId, number>> {
    const rows = await this.#database.run(
      (sql) => sql<{ eventId: EventId; position: number }[]>`
        select event_id as "eventId", position from events where event_id = any (${[...eventIds]})`,
    );
    return new Map(rows.map((row) => [row.eventId, row.position]));
  }

  /** The nearest place before `position` in the room that is taken, or 0. */
  async positionBefore(roomId: RoomId, position: number): Promise<number> {
    const [row] = await this.#database.run(
      (sql) => sql<{ position: number | null }[]>`
        select greatest(
          (select max(position) from events where room_id = ${roomId} and position < ${position} and shown),
          (select max(position) from events where room_id = ${roomId} and position < ${position} and not shown)
        ) as position`,
    );
    return row?.position ?? 0;
  }

  /** The nearest place behind `position` in the room that is taken; undefined where nothing is behind it. */
  async positionAfter(roomId: RoomId, position: number): Promise<number | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ position: number | null }[]>`
        select least(
          (select min(position) from events where room_id = ${roomId} and position > ${position} and shown),
          (select min(position) from events where room_id = ${roomId} and position > ${position} and not shown)
        ) as position`,
    );
    return row?.position ?? undefined;
  }

  /** True if `agent` has answered somebody's later message in the room, or has answered in a way unknown here. */
  async hasAnsweredLater(agent: Speaker, event: StoredEvent): Promise<boolean> {
    const { roomId, sender } = event;
    const rows = await this.#database.run(
      (sql) => sql`
        with later as (${laterThan(sql, event)})
        select 1 from wakes w join later e on e.event_id = w.event_id
        where w.agent = ${agent.name} and w.room_id = ${roomId} and w.turn_id is not null and e.sender = ${sender} and e.shown
        limit 1`,
    );
    return rows.length > 0 || this.hasAnsweredUnknown(agent, event);
  }

  /** True if `agent` has answered the event, and this database does not know it: an older copy was restored. */
  async hasAnsweredUnknown(
    { userId }: Pick<Speaker, "userId">,
    event: Pick<StoredEvent, "position" | "roomId">,
  ): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        with later as (${laterThan(sql, event)})
        select 1 from later e where ${isUnknownAnswer(sql, userId, event.position)}
        limit 1`,
    );
    return rows.length > 0;
  }

  /** True if something newer is known of the membership that this event is about, routed or not. */
  async isOutdated({ roomId, stateKey, position }: StoredEvent): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        select 1 from members where room_id = ${roomId} and user_id = ${stateKey} and position > ${position}
        union all
        select 1 from events where room_id = ${roomId} and routed_at is null and type = 'm.room.member'
          and state_key = ${stateKey} and position > ${position}
        limit 1`,
    );
    return rows.length > 0;
  }

  /** Place at which a member of the room came into it; 0 where the user is none. */
  async joinedAt(roomId: RoomId, userId: UserId): Promise<number> {
    const [row] = await this.#database.run(
      (sql) => sql<{ since: number | null }[]>`
        select joined_position as since from members
        where room_id = ${roomId} and user_id = ${userId} and membership = 'join'`,
    );
    return row?.since ?? 0;
  }

  /** The newest edit of a message by its own sender, if one has come. */
  async editOf(event: StoredEvent): Promise<StoredEvent | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<StoredEvent[]>`
        select ${sql.unsafe(eventColumns)} from events e
        where e.replaces = ${event.eventId} and e.sender = ${event.sender} and e.room_id = ${event.roomId}
          and e.redacted_at is null
        order by e.position desc limit 1`,
    );
    return row;
  }

  /** True if people see something else below the event in its room, or will: it is on its way to be sent. */
  async isFollowed({ position, roomId }: StoredEvent): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isFollowed: boolean }[]>`
        select exists (select 1 from events where room_id = ${roomId} and position > ${position} and shown)
          or exists (
            select 1 from events where room_id = ${roomId} and position > ${position} and not shown
            and type in ('m.room.message', 'm.room.encrypted', 'm.sticker') and replaces is null)
          or exists (
            select 1 from outbox where room_id = ${roomId} and state = 'pending' and kind in ('message', 'file', 'media')
          ) as "isFollowed"`,
    );
    return row?.isFollowed ?? false;
  }

  /** Redactions of an event that came before it did. */
  redactionsOf(event: StoredEvent): Promise<StoredEvent[]> {
    return this.#database.run(
      (sql) => sql<StoredEvent[]>`
        select ${sql.unsafe(eventColumns)} from events e where e.redacts = ${event.eventId} and e.room_id = ${event.roomId}`,
    );
  }

  async hasSpokenIn(roomId: RoomId, threadId: EventId, sender: UserId): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        with theirs as materialized (
          select room_id, shown from events where event_id = ${threadId} and sender = ${sender}
          union all
          select room_id, shown from events
          where content->'m.relates_to'->>'rel_type' = 'm.thread' and content->'m.relates_to'->>'event_id' = ${threadId}
            and sender = ${sender}
        )
        select 1 from theirs where room_id = ${roomId} and shown limit 1`,
    );
    return rows.length > 0;
  }

  /** Gives a message the content of its edit, and those who remember it the memory of that. */
  async applyEdit(target: EventId, content: Json, memory?: Memory): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with ${rememberAnew(sql, target, memory)}
        update events set original = coalesce(original, content), content = ${sql.json(content)}, edited_at = now()
        where event_id = ${target} and redacted_at is null`,
    );
  }

  /** Gives a message back what it said before it was edited. */
  async unedit(target: EventId): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update events set content = original, original = null, edited_at = null
        where event_id = ${target} and original is not null`,
    );
  }

  /** Has agents remember of a message what it says now. */
  async rememberAnew(target: EventId, memory: Memory | undefined): Promise<void> {
    await this.#database.run((sql) => sql`with ${rememberAnew(sql, target, memory)} select 1`);
  }

  /** See `redactEvent`. */
  redact(target: EventId, prints: readonly string[] = []): Promise<Redacted> {
    return redactEvent(this.#database, target, prints);
  }

  /** See `wordsOf`. */
  wordsOf(target: EventId): Promise<EventWords> {
    return wordsOf(this.#database, target);
  }
}
