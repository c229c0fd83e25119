import type { Database, Sql } from "../../adapters/database/connection.ts";
import { callAfter } from "../../base/lib/clock.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";

export interface Render {
  readonly turnId: number;
  /** Number of the step that it was made for. */
  readonly n: number;
  readonly system: string;
  readonly prompt: string;
  readonly eventIds: readonly EventId[];
  /** Definitions of the tools that were offered with it. */
  readonly tools: string;
  /** Sub-agent to whom it was shown; null: the agent itself. */
  readonly subAgent: string | null;
}

export interface NewRender extends Render {
  /** A name for its `tools`. */
  readonly toolset: string;
}

/** A render that is kept on its own after a while, unless it was written with the step that came of it before. */
export interface PendingRender {
  /** Hands it to whoever writes it now. Undefined where it is kept already; what could not be kept is tried again. */
  take(): Promise<NewRender | undefined>;
}

/**
 * Part of a statement: keeps a render, empty if one of its events was redacted in the meantime. Its tools are there.
 * @param turn the table or CTE that has the turn's id, as long as the turn is the caller's
 */
export const insertRender = (sql: Sql, render: NewRender, turn: string) => sql`
  insert into renders (turn_id, n, system, prompt, event_ids, toolset, sub_agent)
  select t.id, ${render.n}, case when gone then '' else ${render.system} end, case when gone then '' else ${render.prompt} end,
    s.ids, ${render.toolset}, ${render.subAgent}
  from ${sql(turn)} t, (select ${[...render.eventIds]}::text[] as ids) s,
    lateral (select exists (select 1 from events where event_id = any (s.ids) and redacted_at is not null) as gone) g
  on conflict (turn_id, n) do update set system = excluded.system, prompt = excluded.prompt, event_ids = excluded.event_ids,
    toolset = excluded.toolset`;

/** Renders exactly as the model was shown them: kept for 3 days. */
export class Renders {
  readonly #database: Database;
  readonly #patienceMs: number;
  /** Sets of tools that are in the database. */
  readonly #toolsets = new Set<string>();

  /** `patienceMs`: how long a render may wait for its step. */
  constructor(database: Database, patienceMs = 2_000) {
    this.#database = database;
    this.#patienceMs = patienceMs;
  }

  async keep(render: NewRender): Promise<void> {
    const { turnId, toolset } = render;
    const tools = this.#toolsets.has(toolset) ? null : render.tools;
    await this.#database.run(
      (sql) => sql`
        with offered as (
          insert into toolsets (hash, definitions) select ${toolset}, ${tools} where ${tools}::text is not null
          on conflict (hash) do nothing
        ), turn as (select ${turnId}::bigint as id)
        ${insertRender(sql, render, "turn")}`,
    );
    this.#toolsets.add(toolset);
  }

  /** See `PendingRender`. The first with a set of tools does not wait: whoever takes one finds its tools in place. */
  keepSoon(render: NewRender): PendingRender {
    let kept: Promise<void> | undefined;
    const keep = () => {
      kept = this.keep(render);
      kept.catch(() => {});
    };
    let cancel = () => {};
    if (this.#toolsets.has(render.toolset)) cancel = callAfter(this.#patienceMs, keep);
    else keep();
    return {
      take: async () => {
        cancel();
        await kept?.catch(() => this.keep(render));
        return kept ? undefined : render;
      },
    };
  }

  /** Reads the renders of a turn; undefined where the audience may not read an event in them, since it came later. */
  async of(turnId: number, audience: readonly UserId[]): Promise<Render[] | undefined> {
    const rows = await this.#database.run(
      (sql) => sql<(Render & { isEarly: boolean })[]>`
        select turn_id as "turnId", n, system, prompt, event_ids as "eventIds", coalesce(definitions, '') as tools,
          sub_agent as "subAgent",
          exists (select 1 from events e where e.event_id = any (r.event_ids) and is_unseen(${[...audience]}, e.room_id, e.position))
            or exists (select 1 from turns t, unnest(t.sources) s where t.id = r.turn_id and is_unseen(${[...audience]}, s, t.place)) as "isEarly"
        from renders r left join toolsets on hash = toolset where turn_id = ${turnId} order by n`,
    );
    return rows.some(({ isEarly }) => isEarly) ? undefined : rows.map(({ isEarly: _, ...render }) => render);
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
