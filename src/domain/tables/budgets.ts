import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";
import { type Change, insertAudit } from "./audit.ts";

/** Holder of a budget: the whole bridge, an agent, a room, or the people for whom a turn works. */
export type BudgetScope = "bridge" | "agent" | "room" | "requester";

/** Purse beside those, from which an agent pays for tidying its memory; its key is the agent's name. */
export const tidyingScope = "default mode";

/** Limit for one day (UTC); undefined: none. */
export interface Limit {
  readonly tokens?: number | undefined;
  /** US dollars. */
  readonly usd?: number | undefined;
}

/** One purse from which a call is paid. `key` names the agent, room or person; the bridge's is empty. */
export interface Account extends Limit {
  readonly scope: BudgetScope | typeof tidyingScope;
  readonly key: string;
}

export interface Amount {
  readonly tokens: number;
  readonly usd: number;
}

export interface Refusal {
  readonly scope: Account["scope"];
  readonly key: string;
  /** As `2026-01-31`: the next begins when this one ends in UTC. */
  readonly day: string;
}

/** A limit that was set by command. The key `*` stands for each that has none of its own. */
export interface SetLimit {
  readonly scope: BudgetScope;
  readonly key: string;
  readonly tokens: number | null;
  readonly usd: number | null;
}

/** Amounts that somebody or something has spent, and how. */
export interface Spending {
  readonly scope: BudgetScope;
  readonly key: string;
  readonly calls: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly usd: number;
  /** Characters of prompts that were measured, and of them those that the conversation's previous call began with. */
  readonly promptChars: number;
  readonly prefixChars: number;
  /** Tokens of the prompts' messages by their roles; null where none were measured. */
  readonly shares: Readonly<Partial<Record<Share["role"], number>>> | null;
}

/** Tokens that one message of a prompt has of all of them; `tools` are the descriptions of the functions. */
export interface Share {
  readonly role: "tools" | "system" | "user" | "assistant" | "tool";
  readonly tokens: number;
}

/** A model call of a turn, by its step. */
export interface StepSpending extends Omit<CallUsage, "costUsd" | "milliseconds"> {
  readonly n: number;
  readonly costUsd: number | null;
  readonly shares: readonly Share[] | null;
}

/** Tokens and money that a model call consumed. */
export interface CallUsage {
  readonly model: string;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly costUsd: number | undefined;
  readonly isEstimated: boolean;
  readonly milliseconds: number;
}

/** A model call that belongs to no finished step. */
export interface LooseUsage extends CallUsage {
  readonly key: string;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly requesters: readonly UserId[];
}

export const amountOf = ({ promptTokens, completionTokens, costUsd }: CallUsage): Amount => ({
  tokens: promptTokens + completionTokens,
  usd: costUsd ?? 0,
});

/**
 * Part of a statement, after `with` and a name: replaces what is reserved under the key by what was spent, if the table
 * or expression `once` has a row. Two CTEs, `settled` and `charged`.
 */
export const settleReservation = (sql: Sql, key: string | undefined, spent: Amount, once: string) => sql`
  settled as (
    delete from reservations where key = ${key ?? ""} and exists (select 1 from ${sql(once)}) returning *
  ), charged as (
    insert into spending (day, scope, key, tokens, usd)
    select r.day, a.scope, a.key, ${spent.tokens}::bigint - r.tokens, ${spent.usd}::float8 - r.usd
    from settled r, jsonb_to_recordset(r.accounts) as a(scope text, key text) order by a.scope, a.key
    on conflict (day, scope, key) do update set tokens = spending.tokens + excluded.tokens, usd = spending.usd + excluded.usd
  )`;

const today = "(now() at time zone 'utc')::date";

export class Budgets {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reserves from all accounts or from none; again under the same key: in place of what was reserved there. */
  async reserve(
    key: string,
    turnId: number | null,
    accounts: readonly Account[],
    { tokens, usd }: Amount,
  ): Promise<Refusal | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ refused: Refusal | null }[]>`
        select reserve_budget(${key}, ${turnId}, ${sql.json(accounts as unknown as Json)}, ${tokens}, ${usd}) as refused`,
    );
    return row?.refused ?? undefined;
  }

  /** Gives back what is reserved under the key: nothing was spent. */
  async release(key: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`with once as (select 1), ${settleReservation(sql, key, { tokens: 0, usd: 0 }, "once")} select 1`,
    );
  }

  /**
   * Records a call that no step will record, and settles what was reserved under its key. One that broke off, and was
   * made again, counts as one that took what both did.
   */
  async record(usage: LooseUsage): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with once as (select 1), ${settleReservation(sql, usage.key, amountOf(usage), "once")}
        insert into usage (key, agent, room_id, requesters, model, prompt_tokens, cached_tokens, completion_tokens, cost_usd, estimated, milliseconds)
        values (${usage.key}, ${usage.agent}, ${usage.roomId}, ${[...usage.requesters]}::text[], ${usage.model}, ${usage.promptTokens},
          ${usage.cachedTokens}, ${usage.completionTokens}, ${usage.costUsd ?? null}, ${usage.isEstimated}, ${usage.milliseconds})
        on conflict (key) do update set prompt_tokens = usage.prompt_tokens + excluded.prompt_tokens,
          cached_tokens = usage.cached_tokens + excluded.cached_tokens,
          completion_tokens = usage.completion_tokens + excluded.completion_tokens,
          cost_usd = coalesce(usage.cost_usd + excluded.cost_usd, usage.cost_usd, excluded.cost_usd),
          milliseconds = usage.milliseconds + excluded.milliseconds, estimated = false
        where usage.estimated and not excluded.estimated`,
    );
  }

  /** Gives back what calls had reserved whose turn has ended, or whose process died more than an hour ago. */
  async releaseAbandoned(): Promise<void> {
    const keys = await this.#database.run(
      (sql) => sql<{ key: string }[]>`
        select key from reservations r
        where created_at < now() - interval '1 hour'
          or not exists (select 1 from turns t where t.id = r.turn_id and t.state = 'running') and turn_id is not null`,
    );
    for (const { key } of keys) await this.release(key);
  }

  limits(): Promise<SetLimit[]> {
    return this.#database.run(
      (sql) => sql<SetLimit[]>`select scope, key, tokens, usd from budgets order by scope, key`,
    );
  }

  /** Sets a limit, or (null) takes away what was set, and writes that into the audit. What was spent today counts. */
  async setLimit(scope: BudgetScope, key: string, limit: Limit | null, change: Change): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with counted as (
          select * from spending where day = ${sql.unsafe(today)} and scope <> ${tidyingScope} and not exists (select 1 from reservations)
          order by scope, key for update
        ), recount as (
          delete from spending s using counted c where s.day = c.day and s.scope = c.scope and s.key = c.key
        ), given as (
          insert into budgets (scope, key, tokens, usd, set_by)
          select ${scope}, ${key}, ${limit?.tokens ?? null}, ${limit?.usd ?? null}, ${change.actor} where ${limit !== null}
          on conflict (scope, key) do update set tokens = excluded.tokens, usd = excluded.usd, set_by = excluded.set_by, set_at = now()
        ), taken as (
          delete from budgets where scope = ${scope} and key = ${key} and ${limit === null}
        ), changed as (
          select ${change.before}::text as before
        )
        ${insertAudit(sql, change, "changed")}`,
    );
  }

  /** Reads what these accounts have spent today (UTC); those that spent nothing are missing. */
  spentToday(accounts: readonly Pick<Account, "scope" | "key">[]): Promise<Spending[]> {
    return this.#database.run(
      (sql) => sql<Spending[]>`
        with spent as materialized (
          select a.scope, a.key as account, u.* from jsonb_to_recordset(${sql.json(accounts as unknown as Json)}) as a(scope text, key text)
          join usage u on u.created_at >= ${sql.unsafe(today)}::timestamp at time zone 'utc' and case a.scope
            when 'bridge' then true when 'agent' then u.agent = a.key when 'room' then u.room_id = a.key
            else a.key = any (u.requesters) end
        ), shared as (
          select scope, account, role, sum(tokens) as tokens
          from spent, jsonb_to_recordset(shares) as s(role text, tokens integer) group by scope, account, role
        )
        select scope, account as key, count(*) as calls, sum(prompt_tokens) as "promptTokens", sum(cached_tokens) as "cachedTokens",
          sum(completion_tokens) as "completionTokens", coalesce(sum(cost_usd), 0) as usd,
          coalesce(sum(prompt_chars), 0) as "promptChars", coalesce(sum(prefix_chars) filter (where prompt_chars is not null), 0) as "prefixChars",
          (select jsonb_object_agg(role, tokens) from shared h where h.scope = spent.scope and h.account = spent.account) as shares
        from spent group by scope, account order by scope, account`,
    );
  }

  /** Model calls of a turn's steps, in their order. */
  ofTurn(turnId: number): Promise<StepSpending[]> {
    return this.#database.run(
      (sql) => sql<StepSpending[]>`
        select n, model, prompt_tokens as "promptTokens", cached_tokens as "cachedTokens", completion_tokens as "completionTokens",
          cost_usd as "costUsd", estimated as "isEstimated", shares
        from usage where turn_id = ${turnId} order by n`,
    );
  }

  /** Finds the agents, rooms and people that spent most today (UTC), and the bridge as a whole. */
  async spendersToday(most: number): Promise<Pick<Spending, "scope" | "key">[]> {
    return this.#database.run(
      (sql) => sql<Pick<Spending, "scope" | "key">[]>`
        with today as (
          select agent, room_id, requesters, prompt_tokens + completion_tokens as tokens from usage
          where created_at >= ${sql.unsafe(today)}::timestamp at time zone 'utc'
        )
        select scope, key from (
          select 0 as place, 'bridge' as scope, '' as key, 0 as tokens
          union all (select 1, 'agent', agent, sum(tokens) from today group by agent order by 4 desc limit ${most})
          union all (select 2, 'room', room_id, sum(tokens) from today where room_id <> '' group by room_id order by 4 desc limit ${most})
          union all (select 3, 'requester', person, sum(tokens) from today, unnest(requesters) person group by person order by 4 desc limit ${most})
        ) spenders order by place, tokens desc`,
    );
  }

  /** Dollars per token, prompt and answer alike, that each model has cost in the last days. */
  async prices(): Promise<{ model: string; usdPerToken: number }[]> {
    return this.#database.run(
      (sql) => sql<{ model: string; usdPerToken: number }[]>`
        select model, sum(cost_usd) / nullif(sum(prompt_tokens + completion_tokens), 0) as "usdPerToken" from usage
        where created_at > now() - interval '7 days' and cost_usd is not null group by model
        having sum(prompt_tokens + completion_tokens) > 0`,
    );
  }
}
