import type { Database } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { eventColumns, type IncomingEvent, insertEvents, type StoredEvent } from "./events.ts";
import { type EventMemory, rememberEvents } from "./interactions.ts";

/** An agent's coming into a room, from which its history is read. */
interface Coming {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly eventId: EventId;
  readonly position: number;
}

/** Limits of what is read of a room. */
interface PastLimits {
  readonly historyMessages: number;
  readonly historyDays: number;
}

/** Places in a room's order for events from before an agent came, the newest first. */
export interface PastPlaces {
  readonly bottom: number;
  readonly distance: number;
  readonly most: number;
  /** Places that are taken. */
  readonly placed: number;
}

/** History of a room that is still to be read. */
export interface PastReading extends PastPlaces {
  readonly roomId: RoomId;
  readonly userId: UserId;
  readonly token: string;
  readonly oldest: Date;
}

/** A page that was read: what is remembered of it, and from where on the next one is. */
interface PastPage {
  readonly memories: readonly EventMemory[];
  readonly placed: number;
  /** Undefined where nothing is left to read. */
  readonly next: string | undefined;
}

/** The place behind which `index` places are taken. */
export const pastPlace = ({ bottom, distance, most }: PastPlaces, index: number): number =>
  bottom + distance * (most - index);

/** How far the history of each room is read, from before an agent of ours came. */
export class PastReadings {
  readonly #database: Database;
  readonly #limits: PastLimits;

  constructor(database: Database, limits: PastLimits) {
    this.#database = database;
    this.#limits = limits;
  }

  /**
   * Begins a reading, or finds how it was begun for this join: the places stay as they are.
   * @param least places that are needed in any case
   */
  async begin({ roomId, userId, eventId, position }: Coming, least: number): Promise<PastPlaces> {
    const { historyDays, historyMessages } = this.#limits;
    const most = Math.max(least, historyMessages);
    const [row] = await this.#database.run(
      (sql) => sql<PastPlaces[]>`
        insert into past_readings as r (room_id, user_id, join_event, bottom, distance, most, oldest)
        select ${roomId}, ${userId}, ${eventId}, bottom, (${position}::float8 - bottom) / ${most + 1}::float8, ${most},
          now() - ${historyDays} * interval '1 day'
        from (select coalesce(greatest(
          (select max(position) from events where room_id = ${roomId} and position < ${position} and shown),
          (select max(position) from events where room_id = ${roomId} and position < ${position} and not shown)
        ), 0) as bottom) taken
        on conflict (room_id, user_id) do update set
          (join_event, token, bottom, distance, most, placed, oldest) = (select ${eventId}, null::text,
            case when same then r.bottom else excluded.bottom end, case when same then r.distance else excluded.distance end,
            case when same then r.most else excluded.most end, 0, excluded.oldest from (select r.join_event = ${eventId} as same) s)
        returning bottom, distance, most, placed`,
    );
    if (!row) throw new Error("a reading was not begun");
    return row;
  }

  /** The newest part is read: the rest is left to the keeper. Without a token there is no rest. */
  async leave({ roomId, userId }: Pick<Coming, "roomId" | "userId">, placed: number, token: string | undefined) {
    await this.#database.run((sql) =>
      token === undefined
        ? sql`delete from past_readings where room_id = ${roomId} and user_id = ${userId}`
        : sql`
          update past_readings set token = ${token}, placed = ${placed}, due_at = now()
          where room_id = ${roomId} and user_id = ${userId}`,
    );
  }

  /** The reading that has waited longest, if it is time for one. */
  async next(): Promise<PastReading | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<PastReading[]>`
        select room_id as "roomId", user_id as "userId", token, bottom, distance, most, placed, oldest
        from past_readings where token is not null and due_at <= now() order by due_at limit 1`,
    );
    return row;
  }

  async postpone({ roomId, userId, token }: PastReading, ms: number): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update past_readings set due_at = now() + ${ms}::float8 * interval '1 millisecond'
        where room_id = ${roomId} and user_id = ${userId} and token = ${token}`,
    );
  }

  /** Stores events of the past. They are no part of what agents are shown, and are never routed. */
  async store(events: readonly IncomingEvent[]): Promise<void> {
    if (events.length === 0) return;
    await this.#database.run(
      (sql) => sql`
        with stored as (${insertEvents(sql, events, "history", true)} returning seq)
        select count(*) from stored`,
    );
  }

  /** Of these messages, those that have been edited since by an event that is known. */
  edited(eventIds: readonly EventId[]): Promise<StoredEvent[]> {
    return this.#database.run(
      (sql) => sql<StoredEvent[]>`
        select ${sql.unsafe(eventColumns)} from events e
        where e.event_id = any (${[...eventIds]}) and e.redacted_at is null
          and exists (select 1 from events x where x.replaces = e.event_id)`,
    );
  }

  /** Of these messages, those that are redacted by an event that is known, and still say something. */
  async redacted(eventIds: readonly EventId[]): Promise<EventId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from events e
        where event_id = any (${[...eventIds]}) and redacted_at is null
          and exists (select 1 from events r where r.redacts = e.event_id and r.room_id = e.room_id)`,
    );
    return rows.map(({ eventId }) => eventId);
  }

  /** Messages of the past as they are now. */
  messages(eventIds: readonly EventId[]): Promise<StoredEvent[]> {
    return this.#database.run(
      (sql) => sql<StoredEvent[]>`
        select ${sql.unsafe(eventColumns)} from events e
        where e.event_id = any (${[...eventIds]}) and e.redacted_at is null and e.replaces is null and e.source = 'history'
        order by e.position`,
    );
  }

  /** Has agents remember a page, and moves on. Nothing is changed if another process has moved on meanwhile. */
  async keep({ roomId, userId, token }: PastReading, { memories, placed, next }: PastPage): Promise<void> {
    await this.#database.run((sql) => {
      const isIt = sql`room_id = ${roomId} and user_id = ${userId} and token = ${token}`;
      const moved =
        next === undefined
          ? sql`delete from past_readings where ${isIt} returning 1`
          : sql`update past_readings set token = ${next}, placed = ${placed}, due_at = now() where ${isIt} returning 1`;
      return sql`with moved as (${moved}), ${rememberEvents(sql, memories, "moved")} select 1`;
    });
  }

  async end({ roomId, userId, token }: PastReading): Promise<void> {
    await this.#database.run(
      (sql) => sql`delete from past_readings where room_id = ${roomId} and user_id = ${userId} and token = ${token}`,
    );
  }
}
