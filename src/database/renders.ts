import { digest, type EventId, type UserId } from "../lib/ids.ts";
import type { Database } from "./connection.ts";

export interface Render {
  readonly turnId: number;
  /** Number of the step that it was made for. */
  readonly n: number;
  readonly system: string;
  readonly prompt: string;
  readonly eventIds: readonly EventId[];
  /** Definitions of the tools that were offered with it. */
  readonly tools: string;
  /** Who was shown it; null: the agent itself. */
  readonly subAgent: string | null;
}

/** What was shown to the model, exactly as it was: kept for 3 days. */
export class Renders {
  readonly #database: Database;
  /** Sets of tools that are in the database. */
  readonly #toolsets = new Set<string>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Keeps a render; empty if one of its events was redacted in the meantime. */
  async keep(render: Render): Promise<void> {
    const toolset = digest("toolset", render.tools);
    const tools = this.#toolsets.has(toolset) ? null : render.tools;
    await this.#database.run(
      (sql) => sql`
        with offered as (
          insert into toolsets (hash, definitions) select ${toolset}, ${tools} where ${tools}::text is not null
          on conflict (hash) do nothing
        )
        insert into renders (turn_id, n, system, prompt, event_ids, toolset, sub_agent)
        select ${render.turnId}, ${render.n}, case when gone then '' else ${render.system} end,
          case when gone then '' else ${render.prompt} end, ${[...render.eventIds]}, ${toolset}, ${render.subAgent}
        from (select exists (select 1 from events where event_id = any (${[...render.eventIds]}) and redacted_at is not null) as gone) g
        on conflict (turn_id, n) do update set system = excluded.system, prompt = excluded.prompt, event_ids = excluded.event_ids,
          toolset = excluded.toolset`,
    );
    this.#toolsets.add(toolset);
  }

  /** What was shown in a turn; undefined where the audience may not read an event in it, since it came later. */
  async of(turnId: number, audience: readonly UserId[]): Promise<Render[] | undefined> {
    const rows = await this.#database.run(
      (sql) => sql<(Render & { early: boolean })[]>`
        select turn_id as "turnId", n, system, prompt, event_ids as "eventIds", coalesce(definitions, '') as tools,
          sub_agent as "subAgent",
          exists (select 1 from events e where e.event_id = any (r.event_ids)
            and e.position < history_floor(${[...audience]}, e.room_id)) as early
        from renders r left join toolsets on hash = toolset where turn_id = ${turnId} order by n`,
    );
    return rows.some(({ early }) => early) ? undefined : rows.map(({ early: _, ...render }) => render);
  }

  async forgetOld(): Promise<void> {
    this.#toolsets.clear();
    await this.#database.run(
      (sql) => sql`
        with gone as (delete from renders where created_at < now() - interval '3 days')
        delete from toolsets t where created_at < now() - interval '3 days'
          and not exists (select 1 from renders r where r.toolset = t.hash and r.created_at >= now() - interval '3 days')`,
    );
  }
}
