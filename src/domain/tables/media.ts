import type { Database, Json } from "../../adapters/database/connection.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";

/** State of the file that an event carries. */
export type Media =
  | { readonly state: "pending"; readonly attempts?: number }
  | {
      readonly state: "kept";
      /** Path in the virtual file system, `rooms:/…`. */
      readonly path: string;
      /** As the bytes say, not as the sender said. */
      readonly contentType: string;
      readonly bytes: number;
      readonly width?: number | undefined;
      readonly height?: number | undefined;
    }
  /** The reason is for people and agents. */
  | { readonly state: "missing"; readonly reason: string };

/** A file that waits to be fetched. */
export interface ToFetch {
  readonly eventId: EventId;
  readonly roomId: RoomId;
  readonly type: string;
  readonly sender: UserId;
  /** Empty where the event was redacted meanwhile. */
  readonly content: Record<string, unknown>;
  /** Number of attempts, this one included. */
  readonly attempts: number;
}

/** Longer than any fetch takes: after this whoever took it has died. */
const lease = "3 minutes";

/** The files that events carry, from the event's routing until they are kept or given up. */
export class MediaTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Takes the file that has waited longest; nobody else is given it meanwhile. */
  async take(): Promise<ToFetch | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<ToFetch[]>`
        update events set media_after = now() + ${lease}::interval,
          media = jsonb_build_object('state', 'pending', 'attempts', coalesce((media->>'attempts')::int, 0) + 1)
        where event_id = (
          select event_id from events where media_after <= now() order by media_after limit 1 for update skip locked)
        returning event_id as "eventId", room_id as "roomId", type, sender, content, (media->>'attempts')::int as attempts`,
    );
    return row;
  }

  /** Puts a file back that could not be fetched now. */
  async putBack(eventId: EventId, afterMs: number): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update events set media_after = now() + ${afterMs}::float8 * interval '1 millisecond'
        where event_id = ${eventId} and media_after is not null`,
    );
  }

  /**
   * Says what became of a file. Of an event that was redacted meanwhile nothing stays: also what was kept of it
   * a moment ago is removed.
   */
  async settle(eventId: EventId, media: Media): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with settled as (
          update events set media_after = null,
            media = case when redacted_at is null then ${sql.json(media as unknown as Json)}::jsonb end
          where event_id = ${eventId} and media_after is not null
          returning redacted_at
        ), erased as (
          delete from file_versions where event_id = ${eventId} and exists (select 1 from settled where redacted_at is not null)
        )
        delete from files where event_id = ${eventId} and exists (select 1 from settled where redacted_at is not null)`,
    );
  }

  /** Content of the files that came with these events, as far as it is no text. */
  async contents(eventIds: readonly EventId[]): Promise<Map<EventId, Uint8Array>> {
    const rows = await this.#database.run(
      (sql) => sql<{ eventId: EventId; content: Uint8Array }[]>`
        select event_id as "eventId", binary_content as content from files
        where event_id = any (${[...eventIds]}) and binary_content is not null`,
    );
    return new Map(rows.map(({ eventId, content }) => [eventId, content]));
  }

  /** True if a file of these events still waits to be fetched. */
  async areWaiting(eventIds: readonly EventId[]): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        select 1 from events where event_id = any (${[...eventIds]}) and media_after is not null limit 1`,
    );
    return rows.length > 0;
  }
}
