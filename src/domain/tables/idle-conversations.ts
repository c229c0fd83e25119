import type { Database, Json } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation } from "../../base/lib/ids.ts";
import { tidyingScope } from "./budgets.ts";

/** An agent that tidies its memory where nothing has happened for long. */
export interface Tidier {
  readonly agent: AgentName;
  readonly afterSeconds: number;
  /** Limits of a day; null: none. */
  readonly tokens: number | null;
  readonly usd: number | null;
  /** LMML that it is shown when it wakes. */
  readonly note: string;
}

/** Conversations in which nothing has happened for long. */
export class IdleConversations {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Names agents whose settings may have a default mode: their `agent.json` says so. */
  async findCandidates(): Promise<AgentName[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ name: AgentName }[]>`
        select a.name from agents a join files f on f.share = 'agents' and f.path = '/' || a.name || '/agent.json'
        where a.deleted_at is null and a.paused_at is null and f.text_content ~ '"defaultMode"\\s*:\\s*\\{' order by a.name`,
    );
    return rows.map(({ name }) => name);
  }

  /**
   * Wakes each of the agents in one of its conversations in which something has happened since it last tidied, and
   * nothing for long, while it works nowhere. A conversation is woken once for what has happened there, whichever process asks. An agent
   * whose budget for it is spent is left alone.
   */
  wake(tidiers: readonly Tidier[]): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        with idle as materialized (
          select distinct on (c.agent) c.agent, c.room_id, c.tidied_at, a.owner, w.note, last.id as last_turn
          from jsonb_to_recordset(${sql.json(tidiers as unknown as Json)})
            as w(agent text, "afterSeconds" integer, tokens bigint, usd float8, note text)
          join agents a on a.name = w.agent and a.paused_at is null and a.deleted_at is null
          join conversations c on c.agent = a.name
          cross join lateral (
            select id, coalesce(ended_at, started_at) as at from turns t
            where t.agent = c.agent and t.room_id = c.room_id and t.reason <> 'default mode' order by t.id desc limit 1) last
          left join rooms r on r.room_id = c.room_id
          where (c.tidied_at is null or c.tidied_at < last.at)
            and greatest(last.at, r.last_shown_at) + make_interval(secs => w."afterSeconds") <= now()
            and (c.room_id = '' or exists (
              select 1 from members m where m.room_id = c.room_id and m.user_id = a.user_id and m.membership = 'join'))
            and not exists (select 1 from turns t where t.agent = a.name and t.state in ('running', 'ready'))
            and not exists (select 1 from turns t where t.agent = a.name and t.room_id = c.room_id and t.state = 'parked')
            and not exists (select 1 from wakes k where k.agent = a.name and k.turn_id is null)
            and not exists (select 1 from spending s
              where s.day = (now() at time zone 'utc')::date and s.scope = ${tidyingScope} and s.key = a.name
                and (s.tokens >= w.tokens or s.usd >= w.usd))
          order by c.agent, last.id
        ), taken as (
          update conversations c set tidied_at = now() from idle
          where c.agent = idle.agent and c.room_id = idle.room_id and c.tidied_at is not distinct from idle.tidied_at
          returning c.agent, c.room_id, idle.owner, idle.note, idle.last_turn
        )
        insert into wakes (key, agent, room_id, reason, requester, chain, note)
        select k.key, agent, room_id, 'default mode', owner, k.key, note
        from taken, lateral (select 'default mode:' || agent || ':' || last_turn as key) k
        on conflict (key) do nothing
        returning agent, room_id as "roomId"`,
    );
  }
}
