import type { Database, Sql } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";

/** An encrypted event whose key has not come. */
export interface SealedEvent {
  readonly eventId: EventId;
  readonly roomId: RoomId;
  readonly sessionId: string;
  /** The agent who looks for the key. */
  readonly userId: UserId;
  readonly reason: string;
  readonly ageSeconds: number;
}

/** Days for which a key is waited for. */
const patience = "7 days";

/** Part of a statement, after a comma: `routed` keeps the event of this id from being tried, until its key comes. */
export const insertSealed = (sql: Sql, event: Omit<SealedEvent, "ageSeconds">) => sql`, sealed as (
  insert into sealed_events (event_id, room_id, session_id, user_id, reason)
  select ${event.eventId}, ${event.roomId}, ${event.sessionId}, ${event.userId}, ${event.reason} from routed
  on conflict (event_id) do update set user_id = excluded.user_id, reason = excluded.reason
)`;

/** Encrypted events that are routed as soon as somebody of ours can read them. */
export class SealedEvents {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** True if another event has the same ciphertext: somebody says again what somebody said. */
  async isRepeated(cipher: string, eventId: EventId): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`select 1 from events where cipher = ${cipher} and event_id <> ${eventId} limit 1`,
    );
    return rows.length > 0;
  }

  /** The first event of each session that is waited for, the oldest first. */
  findWaiting(): Promise<SealedEvent[]> {
    return this.#database.run(
      (sql) => sql<SealedEvent[]>`
        select * from (
          select distinct on (s.room_id, s.session_id) s.event_id as "eventId", s.room_id as "roomId",
            s.session_id as "sessionId", s.user_id as "userId", s.reason,
            extract(epoch from now() - s.since)::float8 as "ageSeconds"
          from sealed_events s order by s.room_id, s.session_id, s.since
        ) first order by "ageSeconds" desc`,
    );
  }

  /** Has events tried again: those of these sessions, or all. Returns their rooms. */
  async release(sessions?: readonly { readonly roomId: RoomId; readonly sessionId: string }[]): Promise<RoomId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ roomId: RoomId }[]>`
        with tried as (
          update events e set routed_at = null, source = case e.source when 'push' then 'sweep' else e.source end
          from sealed_events s
          where s.event_id = e.event_id and e.routed_at is not null ${
            sessions
              ? sql`and exists (
                  select 1 from jsonb_to_recordset(${sql.json(sessions as never)}) as k("roomId" text, "sessionId" text)
                  where k."roomId" = s.room_id and k."sessionId" = s.session_id)`
              : sql``
          } returning e.room_id
        )
        select distinct room_id as "roomId" from tried`,
    );
    return rows.map(({ roomId }) => roomId);
  }

  /** Gives up on keys that have not come for a long time. */
  async forgetOld(): Promise<void> {
    await this.#database.run((sql) => sql`delete from sealed_events where since < now() - ${patience}::interval`);
  }
}
