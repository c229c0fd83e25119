import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { Conversation } from "../../../src/base/lib/ids.ts";
import { type AgentName, HOME, type UserId } from "../../../src/base/lib/ids.ts";
import { createLog, silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { Chains } from "../../../src/domain/tables/chains.ts";
import { chainBudget, type WakeDraft } from "../../../src/domain/tables/effects.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { outcomeUnknown } from "../../../src/engine/operations/operation.ts";
import { defineTool, type ToolContext } from "../../../src/engine/operations/tool.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, settleEvent, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, type Step, say, toolName, userText } from "../../support/scripted-model.ts";

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let conversation: Conversation;
  /** Runs of the tools under test, with what each was given; `goOn` says how they go on. */
  let runs: ToolContext[];
  let goOn: (context: ToolContext) => Promise<void>;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    runs = [];
    goOn = async () => {};
    slowly = async () => {};
    const [name, owner, person] = [newKey().replace(" ", "") as AgentName, newUser(), newUser()];
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
    rights = await rightsOf(database(), { test: "operate" });
    conversation = { agent: name, roomId: newRoom() };
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person])
      await setMember(database(), conversation.roomId, userId, "join");
    await wake(database(), conversation, { requester: person });
  });
  afterEach(() => model.stop());

  /** Event that the tool `Slowly` waits for. */
  let slowly: () => Promise<void>;
  const toolNamed = (name: string, isRepeatable: boolean, isImmediate = false) =>
    defineTool({
      name,
      set: "core",
      description: "A tool under test",
      kind: "create",
      isRepeatable,
      isImmediate,
      input: z.object({}),
      async run(_input, context) {
        runs.push(context);
        await (isImmediate ? slowly() : goOn(context));
        return { result: `${name} is done` };
      },
    });
  /** A process of its own, as far as turns are concerned. */
  const newProcess = () => {
    const tools = [sendMessage, toolNamed("Once", false), toolNamed("Again", true), toolNamed("Slowly", true, true)];
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools });
    return { runner: new TurnRunner(mind, nobodyElse, () => {}), turns: mind.turns };
  };
  const askFor = (tool: string) => (request: ModelRequest) => ({ call: toolName(request, tool) });
  const answer = (request: ModelRequest) => say(request, conversation.roomId, "done", { final: true });
  const turnRow = async () => {
    const [row] = await database().sql`select id, state, error from turns where agent = ${conversation.agent}`;
    return row;
  };
  const said = async () => {
    const rows = await database().sql<{ body: string }[]>`
      select content->>'body' as body from outbox where room_id = ${conversation.roomId} order by id`;
    return rows.map(({ body }) => body);
  };
  const journal = async () => {
    const row = await turnRow();
    const steps = await database().sql<{ name: string; state: string }[]>`
      select name, state from steps where turn_id = ${row?.id ?? 0} order by n`;
    return steps.map(({ name, state }) => `${name.replace(/_\w+$/, "")}: ${state}`);
  };
  /** Runs the turn until the tool is at work, and ends the process there. */
  const interrupt = async (tool: string) => {
    model.on(() => true, askFor(tool), { times: 1 });
    const { runner } = newProcess();
    const working = Promise.withResolvers<void>();
    goOn = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        working.resolve();
      });
    const ran = runner.run(conversation);
    await working.promise;
    await runner.close(0);
    await ran;
    goOn = async () => {};
  };

  it("what a tool asks a submodel is counted as the agent's", async () => {
    const reads = ({ body }: ModelRequest) => body.model === "fast";
    model.on(reads, () => ["seven", { usage: { prompt_tokens: 70, completion_tokens: 7, total_tokens: 77 } }]);
    model.on(() => true, askFor("Again"), { times: 1 }).onEvery(answer);
    let answers: string[] = [];
    goOn = async ({ submodel }) => {
      answers = [await submodel.ask("How many?", "a text"), await submodel.ask("Are you sure?", "a text")];
    };
    await newProcess().runner.run(conversation);
    expect(answers).toEqual(["seven", "seven"]);
    const used = await database().sql`
      select model, sum(prompt_tokens) as prompt_tokens, sum(completion_tokens) as completion_tokens from usage
      where agent = ${conversation.agent} and model = 'fast' group by model`;
    expect(used).toEqual([{ model: "fast", prompt_tokens: 140, completion_tokens: 14 }]);
  });

  it("a turn thinks, acts, answers once, and is done", async () => {
    model.on(() => true, askFor("Again"), { times: 1 }).onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
    expect(await journal()).toEqual(["model: done", "call Again: done", "model: done", "call SendMessage: done"]);
    expect(await said()).toEqual(["done"]);
  });

  describe("whose model answers nothing, twice", () => {
    const ran = async () => {
      const lines: { level: number; msg: string }[] = [];
      const log = createLog("warn", { write: (line) => void lines.push(JSON.parse(line)) });
      const mind = mindOf(database(), {
        modelUrl: model.url,
        rights,
        tools: [sendMessage, toolNamed("Again", true)],
        log,
      });
      await new TurnRunner(mind, nobodyElse, () => {}).run(conversation);
      expect(await turnRow()).toMatchObject({ state: "done", error: null });
      return lines.map(({ msg }) => msg);
    };
    const notice = ["I was asked, and found no words for an answer. Ask me again, perhaps in other words."];

    it("tells the person in a direct room so, and the log", async () => {
      model.onEvery("");
      expect(await ran()).toEqual(["the model answered nothing, twice"]);
      expect(model.requests).toHaveLength(2);
      expect(await said()).toEqual(notice);
    });

    it("does so after calls, too", async () => {
      model.on(() => true, askFor("Again"), { times: 1 }).onEvery("");
      expect(await ran()).toHaveLength(1);
      expect(await said()).toEqual(notice);
    });

    it("keeps silent in company, where it tells only the log", async () => {
      await setMember(database(), conversation.roomId, newUser(), "join");
      model.onEvery("");
      expect(await ran()).toHaveLength(1);
      expect(await said()).toEqual([]);
    });

    it.each([
      ["first", ["I would rather not.", ""]],
      ["then", ["", "I would rather not."]],
    ])("does so nowhere where it says %s why", async (_, answers) => {
      for (const text of answers) model.on(() => true, text, { times: 1 });
      expect(await ran()).toEqual([]);
      expect(await said()).toEqual([]);
    });

    it("tells nobody in a room that was encrypted meanwhile in an unknown way", async () => {
      const content = { algorithm: "org.example.unknown" };
      const state = { type: "m.room.encryption", content, sender: newUser() };
      model
        .on(
          () => true,
          async () => {
            await settleEvent(database(), { roomId: conversation.roomId, stateKey: "" }, { state });
            return "";
          },
          { times: 1 },
        )
        .onEvery("");
      expect(await ran()).toHaveLength(1);
      expect(await said()).toEqual([]);
    });
  });

  describe("what is said in one step", () => {
    const words = ["one", "two", "three"];
    const three = (request: ModelRequest) =>
      words.map((text) => say(request, conversation.roomId, text, { final: text === "three" }));
    /** By how many statements the steps of the turn were written. */
    const statements = async () => {
      const row = await turnRow();
      const [found] = await database().sql`
        select count(distinct xmin::text)::int as count from steps where turn_id = ${row?.id ?? 0}`;
      return found?.count;
    };

    it("is written with the thought that led to it, in one statement", async () => {
      model.onEvery(three);
      await newProcess().runner.run(conversation);
      expect(await said()).toEqual(words);
      expect(await turnRow()).toMatchObject({ state: "done" });
      expect(await journal()).toEqual(["model: done", ...words.map(() => "call SendMessage: done")]);
      expect(await statements()).toBe(1);
    });

    it("is written before anything else is done", async () => {
      model
        .on(
          () => true,
          (request) => [...three(request), askFor("Again")(request)],
          { times: 1 },
        )
        .onEvery(answer);
      let before: string[] = [];
      goOn = async () => {
        before = await said();
      };
      await newProcess().runner.run(conversation);
      expect(before).toEqual(words);
    });

    it("is kept where the process ends in the middle of it, and the model is not asked again", async () => {
      const { runner } = newProcess();
      slowly = () => {
        void runner.close(0);
        return new Promise(() => {});
      };
      model.on(
        () => true,
        (request) => [...three(request).slice(0, 2), askFor("Slowly")(request)],
        { times: 1 },
      );
      await runner.run(conversation);
      expect(await said()).toEqual(words.slice(0, 2));
      slowly = async () => {};
      model.onEvery(answer);
      await newProcess().runner.run(conversation);
      expect(await said()).toEqual([...words.slice(0, 2), "done"]);
      expect(model.requests).toHaveLength(2);
    });
  });

  describe.each([
    [
      "is encrypted in an unknown way",
      { state: { type: "m.room.encryption", content: { algorithm: "org.example.unknown" }, sender: newUser() } },
    ],
    ["has been left", { member: "leave" }],
  ] as const)("in a room that %s while the model thinks", (_what, change) => {
    const thenAnswer = (reply: (request: ModelRequest) => Step) => async (request: ModelRequest) => {
      const { agent, roomId } = conversation;
      if ("state" in change) await settleEvent(database(), { roomId, stateKey: "" }, change);
      else await setMember(database(), roomId, `@agent_${agent}:test` as UserId, change.member);
      return reply(request);
    };

    it("nothing is said: the agent is told so", async () => {
      model.on(() => true, thenAnswer(answer), { times: 1 }).onEvery("never mind");
      await newProcess().runner.run(conversation);
      const told = userText(model.requests[1] as ModelRequest);
      expect(told).toMatch(
        "state" in change ? /is encrypted in an unknown way: you cannot speak there/ : /You are not in the room/,
      );
      expect(await said()).toEqual([]);
    });

    it("nothing is said by an agent whose last text is its answer", async () => {
      await database().sql`
        update files set text_content = '{"answer":"text"}', version = version + 1
        where share = 'agents' and path = ${`/${conversation.agent}/agent.json`}`;
      model
        .on(
          () => true,
          thenAnswer(() => "done"),
          { times: 1 },
        )
        .onEvery("done");
      await newProcess().runner.run(conversation);
      expect(await turnRow()).toMatchObject({ state: "done" });
      expect(await said()).toEqual([]);
    });
  });

  it("a turn that another process goes on with does not call the model again for what it has answered", async () => {
    await interrupt("Again");
    model.onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(model.requests).toHaveLength(2);
    expect(await said()).toEqual(["done"]);
  });

  it("a call that may be repeated is, under the same key", async () => {
    await interrupt("Again");
    model.onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(runs.map(({ key }) => key)).toEqual([runs[0]?.key, runs[0]?.key]);
    expect(userText(model.requests[1] as ModelRequest)).toContain("Again is done");
  });

  it("a call that may not be repeated is not, and the model is told that its outcome is unknown", async () => {
    await interrupt("Once");
    expect(await journal()).toEqual(["model: done", "call Once: started"]);
    model.onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(runs).toHaveLength(1);
    expect(userText(model.requests[1] as ModelRequest)).toContain(outcomeUnknown);
    expect(await journal()).toEqual(["model: done", "call Once: done", "model: done", "call SendMessage: done"]);
  });

  it("a call that was begun by a version which did not record it is not repeated either", async () => {
    await interrupt("Once");
    await database().sql`delete from operations where agent = ${conversation.agent}`;
    model.onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(runs).toHaveLength(1);
    expect(userText(model.requests[1] as ModelRequest)).toContain(outcomeUnknown);
  });

  it("a call that was finished is not made again", async () => {
    model.on(() => true, askFor("Once"), { times: 1 });
    model.on(() => true, { hangs: true }, { times: 1 });
    const { runner } = newProcess();
    const ran = runner.run(conversation);
    await model.request((request) => userText(request).includes("Once is done"));
    await runner.close(0);
    await ran;
    model.onEvery(answer);
    await newProcess().runner.run(conversation);
    expect(runs).toHaveLength(1);
    expect(userText(model.requests[2] as ModelRequest)).toContain("Once is done");
  });

  describe("what a wake tells", () => {
    const letter =
      '<message systemId="test" roomId="mailbox" timestamp="2026-01-01T12:00:00Z" sender="@agent_x:test" messageType="m.text">psst</message>';
    const tell = () => wake(database(), conversation, { note: letter, taint: ["@agent_x:test"], requester: newUser() });
    const record = async () => {
      const rows = await database().sql<{ entry: string; taint: string[] }[]>`
        select entry, taint from ephemeris where turn_id = ${(await turnRow())?.id} order by n, part`;
      return rows.filter(({ entry }) => entry.includes("psst"));
    };

    it("is shown once, kept in the record, and taints the turn", async () => {
      await tell();
      model.on(() => true, askFor("Again"), { times: 1 }).onEvery(answer);
      await newProcess().runner.run(conversation);
      for (const request of model.requests) expect(JSON.stringify(request.body.messages).split("psst")).toHaveLength(2);
      expect(await record()).toEqual([{ entry: letter, taint: expect.arrayContaining(["@agent_x:test"]) }]);
      expect(runs[0]?.taint).toContain("@agent_x:test");
    });

    it("is shown in the next step where it comes meanwhile", async () => {
      model.on(() => true, askFor("Again"), { times: 1 }).onEvery(answer);
      goOn = async () => void (await tell());
      await newProcess().runner.run(conversation);
      const [first, second] = model.requests.map((request) => JSON.stringify(request.body.messages));
      expect(first).not.toContain("psst");
      expect(second).toContain("psst");
      expect(await record()).toHaveLength(1);
    });

    it("is in the record also where the process died while the model was shown it, and once", async () => {
      model.on(() => true, askFor("Again"), { times: 1 }).on(() => true, { hangs: true }, { times: 1 });
      goOn = async () => void (await tell());
      const { runner } = newProcess();
      const ran = runner.run(conversation);
      await model.request((request) => userText(request).includes("psst"));
      await runner.close(0);
      await ran;
      goOn = async () => {};
      model.on(() => true, askFor("Again"), { times: 1 });
      await interrupt("Again");
      model.onEvery(answer);
      await newProcess().runner.run(conversation);
      expect(JSON.stringify(model.requests.at(-1)?.body.messages).split("psst")).toHaveLength(2);
      expect(await record()).toHaveLength(1);
    });
  });

  describe("a step that wakes another agent", () => {
    const draft = (chain: string): WakeDraft => ({
      agent: conversation.agent,
      roomId: HOME,
      reason: "mailbox",
      key: newKey(),
      chain,
      note: "<message />",
    });
    const open = async () => {
      const { turns } = newProcess();
      const turn = await turns.claim(conversation, 4);
      if (typeof turn === "string") throw new Error(turn);
      return { turn, turns };
    };
    const woken = async (chain: string) =>
      (await database().sql`select id from wakes where chain = ${chain} and reason = 'mailbox'`).length;

    it("does so once, however often it is written", async () => {
      const { turn, turns } = await open();
      const [chain, chains] = [newKey(), new Chains(database())];
      const step = { n: 0, name: "call TellAgent", result: {}, wakes: [draft(chain)] };
      await turns.commit(turn, step);
      await turns.commit(turn, step);
      expect(await woken(chain)).toBe(1);
      expect(await chains.countRemaining(chain)).toBe(chainBudget - 1);
    });

    it("does so within the chain's budget", async () => {
      const { turn, turns } = await open();
      const chain = newKey();
      for (let n = 0; n < chainBudget + 2; n++)
        await turns.commit(turn, { n, name: "call TellAgent", result: {}, wakes: [draft(chain)] });
      expect(await woken(chain)).toBe(chainBudget);
      expect(await new Chains(database()).countRemaining(chain)).toBeLessThanOrEqual(0);
    });
  });

  it("a turn whose journal says something else than it would do fails, and people are told once", async () => {
    const { turns, runner } = newProcess();
    const turn = await turns.claim(conversation, 4);
    if (typeof turn === "string") throw new Error(turn);
    await turns.commit(turn, { n: 0, name: "call Unknown", result: {} });
    await runner.run(conversation);
    expect(await turnRow()).toMatchObject({ state: "failed", error: expect.stringContaining("cannot be continued") });
    expect(await said()).toEqual([expect.stringContaining("Something went wrong")]);
    expect(model.requests).toHaveLength(0);
  });

  it("a turn that was taken over meanwhile says nothing and changes nothing", async () => {
    const asked = Promise.withResolvers<void>();
    model.onEvery((request) => [{ wait: asked.promise }, answer(request)]);
    const ran = newProcess().runner.run(conversation);
    await model.request(() => true);
    const taken = await newProcess().turns.claim(conversation, 4);
    asked.resolve();
    await ran;
    expect(taken).toMatchObject({ epoch: 2 });
    expect(await turnRow()).toMatchObject({ state: "running" });
    expect([await journal(), await said()]).toEqual([[], []]);
  });

  it("a turn that is stopped ends the model's answer and says nothing", async () => {
    model.onEvery(["I think", { hangs: true }]);
    const { runner } = newProcess();
    const ran = runner.run(conversation);
    const request = await model.request(() => true);
    expect(await runner.stop(conversation, "@you:test")).toHaveLength(1);
    await ran;
    await request.closed;
    expect(request.wasAborted).toBe(true);
    expect(await turnRow()).toMatchObject({ state: "cancelled", error: "stopped by @you:test" });
    expect(await said()).toEqual([]);
  });

  it("a model that cannot answer ends the turn, and people are told once", async () => {
    model.onEvery({ status: 401 });
    const { runner } = newProcess();
    await runner.run(conversation);
    await runner.run(conversation);
    expect(await turnRow()).toMatchObject({ state: "failed" });
    expect(await said()).toEqual([expect.stringContaining("I cannot think right now")]);
  });
});
