import { describe, expect, it } from "vitest";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { BudgetBook, type ConfiguredBudgets, type Price } from "../../../src/domain/budget/book.ts";
import { Budgets } from "../../../src/domain/tables/budgets.ts";
import { makeAgent } from "../../support/agents.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey, newRoom, newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  const bookOf = async (budgets: ConfiguredBudgets = {}, prices: Readonly<Record<string, Price>> = {}) => {
    const book = new BudgetBook(new Budgets(database()), () => ({ budgets, prices }));
    await book.start();
    return book;
  };
  const by = () => ({ key: newKey(), actor: newUser() });

  describe("the limit that holds", () => {
    it("is one's own before the one for each", async () => {
      const [room, other] = [newRoom(), newRoom()];
      const book = await bookOf({ rooms: { "*": { tokens: 10 }, [room]: { usd: 1 } } });
      expect(book.limit("room", room)).toEqual({ usd: 1 });
      expect(book.limit("room", other)).toEqual({ tokens: 10 });
      expect(book.limit("requester", "@ann:test")).toEqual({});
    });

    it("is what was set by command before the configuration, in every process, until it is reset", async () => {
      const room = newRoom();
      const configured = { rooms: { [room]: { usd: 1 } } };
      const [here, there] = [await bookOf(configured), await bookOf(configured)];
      expect(await here.setLimit("room", room, { tokens: 7 }, by())).toEqual({
        before: { usd: 1 },
        after: { tokens: 7 },
      });
      await there.keep();
      expect(there.limit("room", room)).toEqual({ tokens: 7 });
      expect(await here.setLimit("room", room, null, by())).toEqual({ before: { tokens: 7 }, after: { usd: 1 } });
    });

    it("may be none, by command", async () => {
      const room = newRoom();
      const book = await bookOf({ rooms: { "*": { usd: 1 } } });
      expect((await book.setLimit("room", room, {}, by())).after).toEqual({});
      await book.setLimit("room", room, null, by());
    });

    it("of an agent is the stricter of the operator's and its own", async () => {
      const agent = makeAgent("helper", { budget: { tokens: 100, usd: 5 } });
      const book = await bookOf({ agents: { helper: { tokens: 500, usd: 1 } } });
      expect(book.limitOfAgent(agent)).toEqual({ tokens: 100, usd: 1 });
    });
  });

  describe("who pays", () => {
    const payer = (roomId: RoomId, requesters: readonly UserId[]) => ({
      agent: makeAgent("helper"),
      roomId,
      requesters,
    });

    it("is nobody where there is no budget at all", async () => {
      expect((await bookOf()).accounts(payer(newRoom(), [newUser()]))).toEqual([]);
    });

    it("is the bridge, the agent, the room and each person once, as soon as there is one", async () => {
      const [room, person] = [newRoom(), newUser()];
      const book = await bookOf({ bridge: { usd: 1 } });
      expect(book.accounts(payer(room, [person, person])).map(({ scope, key }) => [scope, key])).toEqual([
        ["bridge", ""],
        ["agent", "helper"],
        ["room", room],
        ["requester", person],
      ]);
    });

    it("is no room at home", async () => {
      const book = await bookOf({ bridge: { usd: 1 } });
      expect(book.accounts(payer(HOME, [newUser()])).map(({ scope }) => scope)).toEqual([
        "bridge",
        "agent",
        "requester",
      ]);
    });
  });

  describe("a price", () => {
    const usage = {
      promptTokens: 900,
      cachedTokens: 500,
      completionTokens: 100,
      costUsd: undefined,
      isEstimated: false,
    };

    it("that nobody knows costs nothing", async () => {
      const book = await bookOf();
      expect(book.estimate(newKey(), 900, 100)).toEqual({ tokens: 1_000, usd: 0 });
    });

    it("that is configured counts prompt, cache and answer", async () => {
      const book = await bookOf({}, { m: { prompt: 3, cached: 1, completion: 15 } });
      expect(book.estimate("m", 1_000_000, 100_000).usd).toBeCloseTo(4.5);
      expect(book.priceOf("m", usage).costUsd).toBeCloseTo((400 * 3 + 500 + 100 * 15) / 1e6, 12);
    });

    it("is learned from what the provider reports", async () => {
      const [book, model] = [await bookOf(), newKey()];
      book.priceOf(model, { ...usage, costUsd: 2 });
      expect(book.estimate(model, 400, 100)).toEqual({ tokens: 500, usd: 1 });
    });
  });
});
