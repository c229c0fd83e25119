import type { EventId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";

export interface Render {
  readonly turnId: number;
  /** Number of the step that it was made for. */
  readonly n: number;
  readonly system: string;
  readonly prompt: string;
  readonly eventIds: readonly EventId[];
}

/** What was shown to the model, exactly as it was: kept for 3 days. */
export class Renders {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Keeps a render; empty if one of its events was redacted in the meantime. */
  async keep(render: Render): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into renders (turn_id, n, system, prompt, event_ids)
        select ${render.turnId}, ${render.n}, case when gone then '' else ${render.system} end,
          case when gone then '' else ${render.prompt} end, ${[...render.eventIds]}
        from (select exists (select 1 from events where event_id = any (${[...render.eventIds]}) and redacted_at is not null) as gone) g
        on conflict (turn_id, n) do update set system = excluded.system, prompt = excluded.prompt, event_ids = excluded.event_ids`,
    );
  }

  of(turnId: number): Promise<Render[]> {
    return this.#database.run(
      (sql) => sql<Render[]>`
        select turn_id as "turnId", n, system, prompt, event_ids as "eventIds" from renders where turn_id = ${turnId} order by n`,
    );
  }

  async forgetOld(): Promise<void> {
    await this.#database.run((sql) => sql`delete from renders where created_at < now() - interval '3 days'`);
  }
}
