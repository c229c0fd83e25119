import type { Database } from "../../adapters/database/connection.ts";

/** After this a ping is nobody's concern any more. */
const kept = "1 hour";
/** A homeserver that leaves out the id passes a ping on within this time. */
const passedOn = "30 seconds";

/** Pings of the homeserver that the processes on this database have asked for, and what they have heard. */
export class Pings {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** A process of ours is about to ask for the ping with this id. */
  async markAsked(id: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with old as (delete from pings where coalesce(heard_at, asked_at) < now() - ${kept}::interval)
        insert into pings (id, asked_at) values (${id}, now()) on conflict do nothing`,
    );
  }

  /** A process of ours was pinged. Returns whether one of ours has asked for it; without an id, whether one may have. */
  async markHeard(id: string | undefined): Promise<boolean> {
    const rows = await this.#database.run((sql) =>
      id === undefined
        ? sql<{ isOurs: boolean }[]>`
            update pings set heard_at = now()
            where asked_at > now() - ${passedOn}::interval and heard_at is null returning true as "isOurs"`
        : sql<{ isOurs: boolean }[]>`
            insert into pings (id, heard_at) values (${id}, now())
            on conflict (id) do update set heard_at = now() returning asked_at is not null as "isOurs"`,
    );
    return rows.some(({ isOurs }) => isOurs);
  }

  async wasHeard(id: string): Promise<boolean> {
    const rows = await this.#database.run((sql) => sql`select 1 from pings where id = ${id} and heard_at is not null`);
    return rows.length > 0;
  }
}
