import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { ConfiguredBudgets } from "../../../src/domain/budget/book.ts";
import { Budgets } from "../../../src/domain/tables/budgets.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { defineTool } from "../../../src/engine/operations/tool.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { type MindOptions, mindOf } from "../../support/mind.ts";
import { newEventId, newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say, toolName } from "../../support/scripted-model.ts";

const again = defineTool({
  name: "Again",
  set: "core",
  description: "A tool under test",
  kind: "read",
  isRepeatable: true,
  input: z.object({}),
  run: async () => ({ result: "again, please" }),
});

onEachDatabase((database) => {
  let model: ScriptedModel;
  let conversation: Conversation;
  let userId: UserId;
  let person: UserId;
  let told: string[];
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    told = [];
    person = newUser();
    const name = newKey().replace(" ", "") as AgentName;
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed(
      { name, owner: newUser(), persona: undefined, settings: parseAgentSettings({}, "test") },
      "test",
    );
    conversation = { agent: name, roomId: newRoom() };
    userId = (await directory.find(name))?.userId ?? person;
    await join();
  });
  afterEach(() => model.stop());

  const join = async () => {
    for (const member of [person, userId]) await setMember(database(), conversation.roomId, member, "join");
  };
  const processWith = async (budgets: ConfiguredBudgets, options: Pick<MindOptions, "prices"> = {}) => {
    const mind = mindOf(database(), {
      modelUrl: model.url,
      rights: await rightsOf(database(), { test: "operate" }),
      tools: [sendMessage, again],
      budgets,
      tellOperators: (_text, key) => told.push(key),
      ...options,
    });
    await mind.book.start();
    return { mind, runner: new TurnRunner(mind, nobodyElse, () => {}) };
  };
  const runnerWith = async (...given: Parameters<typeof processWith>) => (await processWith(...given)).runner;
  const ask = async (runner: TurnRunner) => {
    await wake(database(), conversation, { requester: person, eventId: newEventId() });
    await runner.run(conversation);
  };
  const answer = (request: ModelRequest) => say(request, conversation.roomId, "done", { final: true });
  const rows = <Row extends object>(text: string) => database().sql.unsafe<Row[]>(text);
  const said = async () =>
    (
      await rows<{ body: string }>(
        `select content->>'body' as body from outbox where room_id = '${conversation.roomId}' order by id`,
      )
    ).map(({ body }) => body);
  const spent = async (key: string) =>
    (await rows<{ tokens: number; usd: number }>(`select tokens, usd from spending where key = '${key}'`))[0];
  const reservations = async () =>
    (
      await rows(
        `select r.key from reservations r join turns t on t.id = r.turn_id where t.agent = '${conversation.agent}'`,
      )
    ).length;
  const turns = () =>
    rows<{ state: string; error: string | null }>(
      `select state, error from turns where agent = '${conversation.agent}' order by id`,
    );

  it("without any budget nothing is counted or reserved", async () => {
    model.onEvery(answer);
    await ask(await runnerWith({}));
    expect(await said()).toEqual(["done"]);
    expect(await spent(conversation.roomId)).toBeUndefined();
  });

  it("a call costs what the model has counted, for agent, room and person alike", async () => {
    model.onEvery((request: ModelRequest) => [
      answer(request),
      { usage: { prompt_tokens: 700, completion_tokens: 20, total_tokens: 720, cost: 0.25 } },
    ]);
    await ask(await runnerWith({ rooms: { "*": { tokens: 1_000_000 } } }));
    for (const key of [conversation.agent, conversation.roomId, person])
      expect(await spent(key)).toEqual({ tokens: 720, usd: 0.25 });
    expect(await reservations()).toBe(0);
  });

  it("a price that is configured counts where the model reports none", async () => {
    model.onEvery((request: ModelRequest) => [
      answer(request),
      {
        usage: {
          prompt_tokens: 1_000,
          completion_tokens: 100,
          total_tokens: 1_100,
          prompt_tokens_details: { cached_tokens: 500 },
        },
      },
    ]);
    const prices = { m: { prompt: 2, cached: 1, completion: 10 } };
    await ask(await runnerWith({ bridge: { usd: 1_000 } }, { prices }));
    expect((await spent(person))?.usd).toBeCloseTo(0.0025, 10);
  });

  it("what each message has of a prompt's tokens is kept with the step, and told by turn and by account", async () => {
    const counted = (prompt_tokens: number) => ({ usage: { prompt_tokens, completion_tokens: 10, total_tokens: 0 } });
    model.on(
      () => true,
      (request) => [{ call: toolName(request, "Again") }, counted(5_000)],
      { times: 1 },
    );
    model.onEvery((request) => [say(request, conversation.roomId, "done", { final: true }), counted(5_070)]);
    const { runner, mind } = await processWith({});
    await ask(runner);
    const [turn] = await database().sql<{ id: number }[]>`select id from turns where agent = ${conversation.agent}`;
    const [first, second] = await mind.book.table.ofTurn(turn?.id ?? 0);
    expect(first?.shares?.map(({ role }) => role)).toEqual(["tools", "system", "user"]);
    expect(first?.shares?.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(5_000);
    expect(second?.shares?.slice(0, 3)).toEqual(first?.shares);
    expect(second?.shares?.slice(3).map(({ role }) => role)).toEqual(["assistant", "tool"]);
    expect(second?.shares?.slice(3).reduce((sum, { tokens }) => sum + tokens, 0)).toBe(70);
    const [today] = await mind.book.table.spentToday([{ scope: "agent", key: conversation.agent }]);
    expect(Object.keys(today?.shares ?? {}).sort()).toEqual(["assistant", "system", "tool", "tools", "user"]);
    expect(today?.shares?.tools).toBe(2 * (first?.shares?.[0]?.tokens ?? 0));
  });

  it("how far an answer is can be told while it comes: characters / 4", async () => {
    const rest = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    model.onEvery(async function* (request: ModelRequest) {
      yield { reasoning: "a".repeat(200) };
      yield { text: "b".repeat(200) };
      yield { wait: arrived.promise };
      yield { wait: rest.promise };
      yield say(request, conversation.roomId, "done", { final: true });
    });
    const { runner, mind } = await processWith({});
    const ran = ask(runner);
    await vi.waitFor(() => expect(mind.model.underWay()).toHaveLength(1), 30_000);
    arrived.resolve();
    await vi.waitFor(() => expect(mind.model.underWay()[0]?.completionTokens).toBe(100), 30_000);
    expect(mind.model.underWay()[0]).toMatchObject({
      agent: conversation.agent,
      roomId: conversation.roomId,
      model: "m",
    });
    expect(mind.model.underWay()[0]?.promptTokens).toBeGreaterThan(100);
    rest.resolve();
    await ran;
    expect(mind.model.underWay()).toEqual([]);
  });

  describe("a budget that is used up", () => {
    it("ends the turn before the model is asked, is told once in the room, and to the agent", async () => {
      const runner = await runnerWith({ requesters: { [person]: { tokens: 10 } } });
      for (let times = 0; times < 3; times++) await ask(runner);
      expect(model.requests).toHaveLength(0);
      expect(await said()).toEqual([`The budget of ${person} for today is used up. Ask me again after midnight UTC.`]);
      expect((await turns()).map(({ state }) => state)).toEqual(["done", "done", "done"]);
      const shown = await rows<{ entry: string }>(
        `select entry from ephemeris where room_id = '${conversation.roomId}'`,
      );
      expect(shown).toHaveLength(3);
      expect(shown[0]?.entry).toMatch(/^<systemEvent .*The budget of @user\S+ for \d{4}-\d\d-\d\d is used up/s);
      expect(told).toHaveLength(3);
      expect(new Set(told).size).toBe(1);
    });

    it("is told again when the limit was changed and is reached again", async () => {
      await ask(await runnerWith({ agents: { [conversation.agent]: { tokens: 10 } } }));
      await ask(await runnerWith({ agents: { [conversation.agent]: { tokens: 20 } } }));
      expect(await said()).toHaveLength(2);
    });

    it("leaves another room alone", async () => {
      model.onEvery(answer);
      const runner = await runnerWith({ rooms: { [conversation.roomId]: { tokens: 10 } } });
      await ask(runner);
      expect(await said()).toEqual(["This room's budget for today is used up. Ask me again after midnight UTC."]);
      conversation = { ...conversation, roomId: newRoom() };
      await join();
      await ask(runner);
      expect(await said()).toEqual(["done"]);
    });

    it("stops an endless loop of calls in the middle of a turn", async () => {
      model.onEvery((request: ModelRequest) => ({ call: toolName(request, "Again") }));
      await ask(await runnerWith({ rooms: { "*": { tokens: 7_000 } } }));
      expect(model.requests.length).toBeGreaterThan(1);
      expect(model.requests.length).toBeLessThan(10);
      expect(await said()).toEqual(["This room's budget for today is used up. Ask me again after midnight UTC."]);
      expect((await spent(conversation.roomId))?.tokens).toBeLessThanOrEqual(7_000);
    });

    it("breaks off an answer that is longer than what is left", async () => {
      const more = Promise.withResolvers<void>();
      model.onEvery(async function* () {
        for (let piece = 0; piece < 20; piece++) {
          yield "words ".repeat(400);
          // A pause, so that the pieces arrive one by one.
          yield { wait: Promise.race([more.promise, new Promise((resolve) => setTimeout(resolve, 20))]) };
        }
        yield { hangs: true };
      });
      await ask(await runnerWith({ rooms: { "*": { tokens: 8_000 } } }));
      more.resolve();
      expect(model.requests[0]?.wasAborted).toBe(true);
      expect(await said()).toEqual(["This room's budget for today is used up. Ask me again after midnight UTC."]);
      const [used] = await rows<{ isEstimated: boolean; completion: number }>(
        `select estimated as "isEstimated", completion_tokens as completion from usage where room_id = '${conversation.roomId}'`,
      );
      expect(used?.isEstimated).toBe(true);
      expect(used?.completion).toBeGreaterThan(1_000);
      expect(await reservations()).toBe(0);
    });

    it("may be the agent's own", async () => {
      const settings = parseAgentSettings({ budget: { tokens: 10 } }, "test");
      await database().sql`
        update files set text_content = ${JSON.stringify({ ...settings, agentFlags: "" })}, version = version + 1
        where share = 'agents' and path = ${`/${conversation.agent}/agent.json`}`;
      await ask(await runnerWith({}));
      expect(await said()).toEqual(["My budget for today is used up. Ask me again after midnight UTC."]);
    });
  });

  describe("a call that fails", () => {
    it("costs nothing where the provider refused it", async () => {
      model.onEvery({ status: 402, error: "no credit" });
      await ask(await runnerWith({ bridge: { tokens: 1e9 } }));
      expect(await spent(person)).toMatchObject({ tokens: 0 });
      expect(await reservations()).toBe(0);
      expect((await turns())[0]?.state).toBe("failed");
    });

    it("costs what it had come to where it was stopped", async () => {
      model.onEvery(["some words", { hangs: true }]);
      const runner = await runnerWith({ bridge: { tokens: 1e9 } });
      const working = ask(runner);
      await model.request(() => true);
      await runner.stop(conversation, "somebody");
      await working;
      expect((await spent(person))?.tokens).toBeGreaterThan(500);
      expect(await reservations()).toBe(0);
    });

    it("whose process died is paid once, by whoever goes on", async () => {
      const key = async () =>
        `${(await rows<{ id: number }>(`select id from turns where agent = '${conversation.agent}'`))[0]?.id}.0`;
      model.onEvery(answer);
      await wake(database(), conversation, { requester: person, eventId: newEventId() });
      const turn = await new Turns(database(), newKey()).claim(conversation, 4);
      if (typeof turn === "string") throw new Error(turn);
      const account = { scope: "requester", key: person } as const;
      await new Budgets(database()).reserve(await key(), turn.id, [account], { tokens: 5_000, usd: 0 });
      await (await runnerWith({ bridge: { tokens: 1e9 } })).run(conversation);
      expect(await spent(person)).toMatchObject({ tokens: 1_010 });
      expect(await reservations()).toBe(0);
    });
  });
});
