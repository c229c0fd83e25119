import { describe, expect, it } from "vitest";
import type { AgentName, UserId } from "../../../src/base/lib/ids.ts";
import { type Account, Budgets, type LooseUsage } from "../../../src/domain/tables/budgets.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey, newRoom, newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  const budgets = () => new Budgets(database());
  const room = (tokens?: number, usd?: number): Account => ({ scope: "room", key: newRoom(), tokens, usd });
  const person = (tokens?: number, usd?: number): Account => ({ scope: "requester", key: newUser(), tokens, usd });
  const reserve = (accounts: readonly Account[], tokens: number, { usd = 0, key = newKey() } = {}) =>
    budgets().reserve(key, null, accounts, { tokens, usd });
  const held = async ({ scope, key }: Account) => {
    const [row] = await database().run(
      (sql) => sql<{ tokens: number; usd: number }[]>`
        select tokens, usd from spending where scope = ${scope} and key = ${key} and day = (now() at time zone 'utc')::date`,
    );
    return row ?? { tokens: 0, usd: 0 };
  };
  const usage = (account: Account, tokens: number, fields: Partial<LooseUsage> = {}): LooseUsage => ({
    key: newKey(),
    agent: "helper" as AgentName,
    roomId: newRoom(),
    requesters: [account.key as UserId],
    model: "model",
    promptTokens: tokens,
    cachedTokens: 0,
    completionTokens: 0,
    costUsd: undefined,
    isEstimated: false,
    milliseconds: 1,
    ...fields,
  });

  describe("a reservation", () => {
    it("is made up to the limit, and refused beyond it with the account that is spent", async () => {
      const account = room(100);
      expect(await reserve([account], 60)).toBeUndefined();
      expect(await reserve([account], 41)).toMatchObject({ scope: "room", key: account.key });
      expect(await reserve([account], 40)).toBeUndefined();
      expect(await held(account)).toMatchObject({ tokens: 100 });
    });

    it("is refused for money as for tokens", async () => {
      const account = person(undefined, 1);
      expect(await reserve([account], 10, { usd: 0.9 })).toBeUndefined();
      expect(await reserve([account], 10, { usd: 0.2 })).toMatchObject({ scope: "requester" });
    });

    it("takes from all accounts or from none", async () => {
      const [rich, poor] = [room(1_000), person(10)];
      expect(await reserve([rich, poor], 11)).toMatchObject({ key: poor.key });
      expect(await held(rich)).toMatchObject({ tokens: 0 });
    });

    it("counts where there is no limit", async () => {
      const account = room();
      await reserve([account], 1_000_000);
      expect(await held(account)).toMatchObject({ tokens: 1_000_000 });
    });

    it("takes the place of the one under the same key, also when it grows", async () => {
      const account = room(100);
      const key = newKey();
      for (const tokens of [40, 100, 70]) expect(await reserve([account], tokens, { key })).toBeUndefined();
      expect(await held(account)).toMatchObject({ tokens: 70 });
      expect(await reserve([account], 101, { key })).toBeDefined();
      expect(await held(account)).toMatchObject({ tokens: 70 });
    });

    it("lets no two calls that come at once have the same money", async () => {
      const [first, second] = [room(100), person(100)];
      const orders = [
        [first, second],
        [second, first],
      ];
      const calls = Array.from({ length: 30 }, (_, index) => reserve(orders[index % 2] ?? [], 10));
      const refused = (await Promise.all(calls)).filter((refusal) => refusal !== undefined);
      expect(refused).toHaveLength(20);
      expect(await held(first)).toMatchObject({ tokens: 100 });
    });

    it("is given back when nothing was spent, once", async () => {
      const account = room(100);
      const key = newKey();
      await reserve([account], 100, { key });
      await budgets().release(key);
      await budgets().release(key);
      expect(await held(account)).toMatchObject({ tokens: 0 });
    });

    it("is replaced by what was spent, once", async () => {
      const account = person(100, 1);
      const spent = usage(account, 30, { costUsd: 0.25 });
      await reserve([account], 90, { key: spent.key, usd: 0.9 });
      await budgets().record(spent);
      await budgets().record(spent);
      expect(await held(account)).toMatchObject({ tokens: 30, usd: 0.25 });
    });

    it("of a process that died is given back after its time", async () => {
      const account = room(100);
      const key = newKey();
      await reserve([account], 100, { key });
      await budgets().releaseAbandoned();
      expect(await held(account)).toMatchObject({ tokens: 100 });
      await database().run(
        (sql) => sql`update reservations set created_at = now() - interval '2 hours' where key = ${key}`,
      );
      await budgets().releaseAbandoned();
      expect(await held(account)).toMatchObject({ tokens: 0 });
    });

    it("of a turn that is over is given back", async () => {
      const account = room(100);
      await budgets().reserve(newKey(), 999_999, [account], { tokens: 100, usd: 0 });
      await budgets().releaseAbandoned();
      expect(await held(account)).toMatchObject({ tokens: 0 });
    });
  });

  describe("a day", () => {
    /** Everything that was reserved and spent for the account was yesterday. */
    const sleepOver = async ({ key }: Account) => {
      await database().run((sql) => sql`update spending set day = day - 1 where key = ${key}`);
      await database().run(
        (sql) => sql`update reservations set day = day - 1 where accounts @> ${sql.json([{ key }])}::jsonb`,
      );
    };

    it("opens the budget anew", async () => {
      const account = room(100);
      await reserve([account], 100);
      await sleepOver(account);
      expect(await reserve([account], 100)).toBeUndefined();
    });

    it("pays for a call that began in it and ended in the next", async () => {
      const account = person(100);
      const spent = usage(account, 50);
      await reserve([account], 80, { key: spent.key });
      await sleepOver(account);
      await budgets().record(spent);
      const [row] = await database().run(
        (sql) => sql<{ tokens: number }[]>`select tokens from spending where key = ${account.key} order by day limit 1`,
      );
      expect(row?.tokens).toBe(50);
    });
  });

  describe("a limit that is set", () => {
    it("counts what was spent before anybody counted", async () => {
      const account = person(100);
      await budgets().record(usage(account, 95));
      expect(await reserve([account], 6)).toMatchObject({ key: account.key });
      expect(await reserve([account], 5)).toBeUndefined();
    });

    it("replaces the one before, until it is taken away; all of it is in the audit", async () => {
      const { key } = person();
      const change = (before: string, after: string | null) => {
        const actor = newUser();
        return { key: newKey(), actor, subject: `budget of ${key}`, before, after };
      };
      const limit = async () => (await budgets().limits()).filter((set) => set.key === key);
      await budgets().setLimit("requester", key, { tokens: 5 }, change("none", "5"));
      await budgets().setLimit("requester", key, { usd: 2 }, change("5", "2 USD"));
      expect(await limit()).toEqual([{ scope: "requester", key, tokens: null, usd: 2 }]);
      await budgets().setLimit("requester", key, null, change("2 USD", null));
      expect(await limit()).toEqual([]);
      const written = await database()
        .sql`select before, after from audit where subject = ${`budget of ${key}`} order by id`;
      expect(written.map(({ before, after }) => [before, after])).toEqual([
        ["none", "5"],
        ["5", "2 USD"],
        ["2 USD", null],
      ]);
    });

    it("counts what was spent without any limit in between", async () => {
      const account = person(100);
      await reserve([account], 1);
      await database().sql`delete from reservations`;
      await budgets().record(usage(account, 80));
      const change = { key: newKey(), actor: newUser(), subject: "", before: null, after: null };
      await budgets().setLimit("requester", account.key, { tokens: 100 }, change);
      expect(await reserve([account], 21)).toBeDefined();
    });
  });

  it("what was spent today is told by account", async () => {
    const [one, other] = [person(), person()];
    await budgets().record(usage(one, 10, { cachedTokens: 4, completionTokens: 2, costUsd: 0.5 }));
    await budgets().record(usage(one, 10));
    expect(await budgets().spentToday([one, other])).toEqual([
      {
        scope: "requester",
        key: one.key,
        calls: 2,
        promptTokens: 20,
        cachedTokens: 4,
        completionTokens: 2,
        usd: 0.5,
        promptChars: 0,
        prefixChars: 0,
        shares: null,
      },
    ]);
  });

  it("those who spend most are told, the bridge first", async () => {
    const account = person();
    await budgets().record(usage(account, 1_000_000, { agent: "greedy" as AgentName }));
    const spenders = await budgets().spendersToday(1);
    expect(spenders.slice(0, 2)).toEqual([
      { scope: "bridge", key: "" },
      { scope: "agent", key: "greedy" },
    ]);
    expect(spenders.at(-1)).toEqual({ scope: "requester", key: account.key });
  });

  it("a call that broke off and was made again is one call that took what both did, however often it is recorded", async () => {
    const account = person();
    const broken = usage(account, 10, { isEstimated: true, costUsd: 0.5 });
    await budgets().record(broken);
    await budgets().record(broken);
    const whole = { ...broken, promptTokens: 20, completionTokens: 5, costUsd: 1, isEstimated: false };
    await budgets().record(whole);
    await budgets().record(whole);
    expect(await budgets().spentToday([account])).toMatchObject([
      { calls: 1, promptTokens: 30, completionTokens: 5, usd: 1.5 },
    ]);
  });

  it("a model's price is learned from what it has cost", async () => {
    const model = newKey();
    await budgets().record(usage(person(), 900, { model, completionTokens: 100, costUsd: 2 }));
    expect(await budgets().prices()).toContainEqual({ model, usdPerToken: 0.002 });
  });
});
