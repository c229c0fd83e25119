import type { Database } from "../../src/adapters/database/connection.ts";
import type { EventId, UserId } from "../../src/base/lib/ids.ts";

/** Messages that people have marked for themselves. */
export class Stars {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Marks a message. May be repeated: `run` does so where the answer of the database was lost. */
  async add(userId: UserId, eventId: EventId): Promise<void> {
    await this.#database.run(
      (sql) => sql`insert into stars (user_id, event_id) values (${userId}, ${eventId}) on conflict do nothing`,
    );
  }

  /** Messages that the person has marked, the newest first. */
  async of(userId: UserId): Promise<EventId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from stars where user_id = ${userId} order by starred_at desc, event_id`,
    );
    return rows.map(({ eventId }) => eventId);
  }
}
