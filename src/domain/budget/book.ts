import type { Usage } from "../../adapters/model/types.ts";
import { UserError } from "../../base/lib/errors.ts";
import { HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../agents/agent.ts";
import type { Account, Amount, BudgetScope, Budgets, Limit, Refusal, SetLimit } from "../tables/budgets.ts";

/** Payer of a model call. */
export interface Payer {
  /** Unique for the call; the same when it is made again. */
  readonly key: string;
  /** Null: the call belongs to no turn. */
  readonly turnId: number | null;
  readonly agent: Agent;
  readonly roomId: RoomId;
  /** For whom the call is made: each of them pays all of it. */
  readonly requesters: readonly UserId[];
  /** The agent tidies its memory: there is a budget for that. */
  readonly isTidying?: boolean;
}

export const budgetScopes = ["bridge", "agent", "room", "requester"] as const satisfies BudgetScope[];

/** Account that people set limits of. */
type SetAccount = Account & { readonly scope: BudgetScope };

/** Stands for each agent, room or person without a limit of its own. */
export const each = "*";

/** Budgets for a day, as the configuration has them: by agent, room or person, `*` for each that is not named. */
export interface ConfiguredBudgets {
  readonly bridge?: Limit | undefined;
  readonly agents?: Readonly<Record<string, Limit>> | undefined;
  readonly rooms?: Readonly<Record<string, Limit>> | undefined;
  readonly requesters?: Readonly<Record<string, Limit>> | undefined;
}

/** US dollars per million tokens. */
export interface Price {
  readonly prompt: number;
  /** Of prompt tokens that the provider had in its cache; like `prompt` where it is not given. */
  readonly cached?: number | undefined;
  readonly completion: number;
}

interface Configured {
  readonly budgets: ConfiguredBudgets;
  /** By the model's name. */
  readonly prices: Readonly<Record<string, Price>>;
}

/** A budget does not allow the call, or what has arrived of its answer. */
export class BudgetReached extends UserError {
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super(`The budget of ${budgetName(refusal)} for ${refusal.day} is used up; the next begins at midnight UTC.`);
    this.refusal = refusal;
  }
}

/** A budget's name, as people know it. */
export const budgetName = ({ scope, key }: { readonly scope: Account["scope"]; readonly key: string }): string => {
  if (scope === "bridge") return "this bridge";
  if (scope === "default mode") return `the default mode of the agent ${key}`;
  if (key === each) return scope === "requester" ? "each person" : `each ${scope}`;
  return scope === "requester" ? key : `the ${scope} ${key}`;
};

/** A limit in people's words. */
export const limitText = ({ tokens, usd }: Limit): string => {
  const parts = [...(tokens === undefined ? [] : [`${tokens} tokens`]), ...(usd === undefined ? [] : [`${usd} USD`])];
  return parts.length === 0 ? "no limit" : `${parts.join(" and ")} a day`;
};

const settings = { agent: "agents", room: "rooms", requester: "requesters" } as const;

/** Book of the limits that hold now, and of the likely cost of a call. */
export class BudgetBook {
  readonly table: Budgets;
  readonly #now: () => Configured;
  #set = new Map<string, SetLimit>();
  /** US dollars per token, as reported, of models without a configured price. */
  readonly #learned = new Map<string, number>();

  /** `now`: the configuration, which may be another at any time. */
  constructor(table: Budgets, now: () => Configured) {
    this.table = table;
    this.#now = now;
  }

  async start(): Promise<void> {
    await this.refresh();
    for (const { model, usdPerToken } of await this.table.prices()) this.#learned.set(model, usdPerToken);
  }

  /** Reads what was set by command, also in other processes. */
  async refresh(): Promise<void> {
    this.#set = new Map((await this.table.limits()).map((limit) => [`${limit.scope} ${limit.key}`, limit]));
  }

  /** Sets a limit by command; null: the configuration's holds again. Returns what the scope and key had, and now have. */
  async setLimit(
    scope: BudgetScope,
    key: string,
    limit: Limit | null,
    change: { readonly key: string; readonly actor: UserId },
  ): Promise<{ before: Limit; after: Limit }> {
    const before = this.limit(scope, key);
    const written = {
      subject: `budget of ${budgetName({ scope, key })}`,
      before: limitText(before),
      after: limit && limitText(limit),
    };
    await this.table.setLimit(scope, key, limit, { ...change, ...written });
    await this.refresh();
    return { before, after: this.limit(scope, key) };
  }

  /** Every limit that holds, by its own name. */
  all(): SetAccount[] {
    const configured = budgetScopes.flatMap((scope) =>
      Object.keys(this.#limitsFor(scope)).map((key) => `${scope} ${key}`),
    );
    const names = new Set([...configured, ...this.#set.keys()]);
    return [...names].map((name) => {
      const [scope = "bridge", key = ""] = name.split(" ") as [BudgetScope, string];
      return { scope, key, ...this.limit(scope, key) };
    });
  }

  /** From time to time: gives back what dead calls hold, and hears of other processes' changes. */
  async keep(): Promise<void> {
    await this.refresh();
    await this.table.releaseAbandoned();
  }

  /** True if a limit holds anywhere: then everything is counted, so that payers can be told apart. */
  get counts(): boolean {
    return this.#set.size > 0 || budgetScopes.some((scope) => Object.keys(this.#limitsFor(scope)).length > 0);
  }

  /** From where a call is paid; nothing where no budget is set at all. */
  accounts({ agent, isTidying, roomId, requesters }: Omit<Payer, "key" | "turnId">): Account[] {
    const tidying = isTidying ? agent.settings.defaultMode : null;
    const own: Account[] = tidying ? [{ scope: "default mode", key: agent.name, ...tidying.budget }] : [];
    if (agent.settings.budget === null && !this.counts) return own;
    const people = [...new Set(requesters)];
    return [
      ...own,
      { scope: "bridge", key: "", ...this.limit("bridge", "") },
      { scope: "agent", key: agent.name, ...this.limitOfAgent(agent) },
      ...(roomId === HOME ? [] : [{ scope: "room" as const, key: roomId, ...this.limit("room", roomId) }]),
      ...people.map((key) => ({ scope: "requester" as const, key, ...this.limit("requester", key) })),
    ];
  }

  /** The limit by its own name before the one for each; what was set by command before the configuration. */
  limit(scope: BudgetScope, key: string): Limit {
    const configured = this.#limitsFor(scope);
    const find = (name: string): Limit | undefined => {
      const set = this.#set.get(`${scope} ${name}`);
      if (set) return { tokens: set.tokens ?? undefined, usd: set.usd ?? undefined };
      return Object.hasOwn(configured, name) ? configured[name] : undefined;
    };
    return find(key) ?? find(each) ?? {};
  }

  /** The operator's limit and the agent's own: both hold. */
  limitOfAgent(agent: Agent): Limit {
    return stricter(this.limit("agent", agent.name), agent.settings.budget ?? {});
  }

  #limitsFor(scope: BudgetScope): Readonly<Record<string, Limit>> {
    const { bridge, ...others } = this.#now().budgets;
    return scope === "bridge" ? (bridge ? { "": bridge } : {}) : (others[settings[scope]] ?? {});
  }

  /** Estimates the cost of a call of this size; no dollars where nobody knows the price. */
  estimate(model: string, promptTokens: number, completionTokens: number): Amount {
    const tokens = promptTokens + completionTokens;
    const price = this.#now().prices[model];
    const usd = price
      ? (promptTokens * price.prompt + completionTokens * price.completion) / 1e6
      : tokens * (this.#learned.get(model) ?? 0);
    return { tokens, usd };
  }

  /** The usage with its cost, where the provider reports one or the price is configured; learns from it. */
  priceOf(model: string, usage: Usage): Usage {
    const { promptTokens, cachedTokens, completionTokens, costUsd } = usage;
    const price = this.#now().prices[model];
    if (costUsd !== undefined) {
      const perToken = costUsd / Math.max(1, promptTokens + completionTokens);
      this.#learned.set(model, ((this.#learned.get(model) ?? perToken) * 4 + perToken) / 5);
      return usage;
    }
    if (!price) return usage;
    const prompt = (promptTokens - cachedTokens) * price.prompt + cachedTokens * (price.cached ?? price.prompt);
    return { ...usage, costUsd: (prompt + completionTokens * price.completion) / 1e6 };
  }
}

/** Both limits hold. */
const stricter = (one: Limit, other: Limit): Limit => ({
  tokens: least(one.tokens, other.tokens),
  usd: least(one.usd, other.usd),
});

const least = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
