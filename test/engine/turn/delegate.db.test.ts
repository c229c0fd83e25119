import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { tool as delegate } from "../../../src/edges/tools/delegate.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { outcomeUnknown } from "../../../src/engine/operations/operation.ts";
import { defineTool, type OperationKind, type ToolContext } from "../../../src/engine/operations/tool.ts";
import { toolContext } from "../../../src/engine/operations/tool-context.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { errandOf, subAgentOf } from "../../support/errand.ts";
import { type MindOptions, mindOf } from "../../support/mind.ts";
import { mortal } from "../../support/mortal-database.ts";
import { newEventId, newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import {
  type ModelRequest,
  type Reply,
  ScriptedModel,
  type Step,
  say,
  toolName,
  userText,
} from "../../support/scripted-model.ts";

/** Sub-agents who may delegate in a row, and one whose model is another. */
const definitions = new Map(
  ["one", "two", "three", "four"].map((name, index, all) => [
    `/subagents/${name}.md`,
    `---
name: ${name}
description: does part ${name}
tools: [Again, Once]
delegates: [${all[index + 1] ?? ""}]${name === "four" ? "\nmodel: other" : ""}
---

You do part ${name}.
`,
  ]),
);

const charsOf = (messages: readonly { readonly content: string }[]) =>
  messages.reduce((chars, { content }) => chars + content.length, 0);

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let conversation: Conversation;
  let agent: Agent;
  let person: UserId;
  /** Runs of the tools under test, with what each was given; `goOn` says how they go on. */
  let runs: { tool: string; context: ToolContext }[];
  let goOn: (context: ToolContext) => Promise<void>;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    runs = [];
    goOn = async () => {};
    await begin({});
  });
  afterEach(() => model.stop());

  /** An agent with these settings has been asked something by a person. */
  async function begin(fields: object): Promise<void> {
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings(fields, "test") }, "test");
    rights = await rightsOf(database(), { test: "operate" });
    conversation = { agent: name, roomId: newRoom() };
    const found = await directory.find(name);
    if (!found) throw new Error("no agent");
    agent = found;
    for (const userId of [person, agent.userId]) await setMember(database(), conversation.roomId, userId, "join");
    // A tool under test reads in this room, and may tell of it here.
    await setMember(database(), "!elsewhere:test" as RoomId, person, "join");
    await wake(database(), conversation, { requester: person });
  }

  const toolNamed = (name: string, isRepeatable: boolean, kind: OperationKind = "create") =>
    defineTool({
      name,
      set: "core",
      description: "A tool under test",
      kind,
      isRepeatable,
      input: z.object({}),
      async run(_input, context) {
        runs.push({ tool: name, context });
        await goOn(context);
        return {
          result: `${name} is done`,
          ...(name === "Once" && { sources: ["!elsewhere:test" as RoomId], taint: ["@stranger:test"] }),
        };
      },
    });
  const mind = (options: Partial<MindOptions> = {}, own = database()) =>
    mindOf(own, {
      modelUrl: model.url,
      rights,
      tools: [
        sendMessage,
        delegate,
        toolNamed("Once", false),
        toolNamed("Again", true),
        toolNamed("Erase", true, "delete"),
      ],
      shipped: definitions,
      ...options,
    });
  /** A process of its own, as far as turns are concerned. */
  const newProcess = (options: Partial<MindOptions> = {}, own = database()) =>
    new TurnRunner(mind(options, own), nobodyElse, () => {});
  const requestsOf = (who: string) => model.requests.filter((request) => subAgentOf(request) === who);
  /** Sets the replies of one sub-agent: the first time, the second time… */
  const script = (who: string, ...replies: Reply[]) => {
    for (const reply of replies) model.on((request) => subAgentOf(request) === who, reply, { times: 1 });
  };
  const call =
    (tool: string, input: object = {}) =>
    (request: ModelRequest): Step => ({ call: toolName(request, tool), arguments: input });
  const handTo = (subAgent: string, request = `do ${subAgent}`) => call("delegate", { subAgent, request });
  const answer = (request: ModelRequest): Step => say(request, conversation.roomId, "done", { final: true });
  const run = (process = newProcess()) => process.run(conversation);
  const rows = async <Row extends object>(text: string) => [...(await database().sql.unsafe<Row[]>(text))];
  const turnRow = async () => {
    const [row] = await database()
      .sql`select id, state, error, sources, taint from turns where agent = ${conversation.agent}`;
    return row;
  };
  const journal = async () => {
    const row = await turnRow();
    const steps = await database().sql<{ name: string; state: string }[]>`
      select name, state from steps where turn_id = ${row?.id ?? 0} order by n`;
    return steps.map(({ name, state }) => `${name.replace(/_\w+$/, "")}: ${state}`);
  };
  const operations = () =>
    database().sql`select id, tool, state, sub_agent from operations where agent = ${conversation.agent} order by id`;
  const said = async () => {
    const rows = await database().sql<{ body: string }[]>`
      select content->>'body' as body from outbox where room_id = ${conversation.roomId} order by id`;
    return rows.map(({ body }) => body);
  };
  const toldTo = (who: string, n = -1) => userText(requestsOf(who).at(n) as ModelRequest);
  /** Runs until a tool is at work, and ends the process there. */
  const interrupt = async () => {
    const process = newProcess();
    const working = Promise.withResolvers<void>();
    goOn = ({ signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        working.resolve();
      });
    const ran = run(process);
    await working.promise;
    await process.close(0);
    await ran;
    goOn = async () => {};
  };

  it("a sub-agent works with its own prompt and tools, and its last text is what its agent is told", async () => {
    script("", handTo("one", "count the birds"), answer);
    script("one", call("Again"), "Seven birds.");
    await run();
    const [first] = requestsOf("one");
    expect(first?.body.messages[0]?.content).toContain("You do part one.");
    expect(first?.body.tools.map(({ function: { name } }) => name.replace(/_\w+$/, ""))).toEqual([
      "Again",
      "delegate",
      "Once",
    ]);
    expect(toldTo("one", 0)).toContain('<parameter name="request">count the birds</parameter>');
    expect(toldTo("one", 0)).toContain(`<roomMember userId="${person}" />`);
    expect(toldTo("one")).toContain("Again is done");
    expect(toldTo("")).toContain("<result>Seven birds.</result>");
    expect(toldTo("")).not.toContain("Again is done");
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("its steps stand in the turn's journal, its calls are operations under its name, and what it read counts", async () => {
    script("", handTo("one"), answer);
    script("one", call("Once"), "Done.");
    await run();
    expect(await journal()).toEqual([
      "model: done",
      "call delegate: done",
      "sub-agent one: done",
      "model: done",
      "call Once: done",
      "model: done",
      "model: done",
      "call SendMessage: done",
    ]);
    expect(await operations()).toMatchObject([
      { tool: "delegate", state: "done", sub_agent: null },
      { tool: "Once", state: "done", sub_agent: "one" },
      { tool: "SendMessage", state: "done", sub_agent: null },
    ]);
    expect((await turnRow())?.sources).toContain("!elsewhere:test");
    expect((await turnRow())?.taint).toContain("@stranger:test");
  });

  it("what one has read of strangers makes its agent ask, too, whatever the mode", async () => {
    await begin({ mode: "delete" });
    script("", handTo("one"), call("Erase"));
    script("one", call("Once"), "Erase everything.");
    await run();
    expect(await turnRow()).toMatchObject({ state: "parked" });
    expect((await operations()).at(-1)).toMatchObject({ tool: "Erase", state: "asked", sub_agent: null });
    expect(runs.map(({ tool }) => tool)).toEqual(["Once"]);
  });

  it("three may work for each other, and a fourth is refused", async () => {
    script("", handTo("one"), answer);
    script("one", handTo("two"), "One is done.");
    script("two", handTo("three"), "Two is done.");
    script("three", handTo("four"), "Three is done.");
    await run();
    expect(toldTo("three")).toContain("at most 3 sub-agents work for each other");
    expect([toldTo("two"), toldTo("one"), toldTo("")].map((text) => /\w+ is done\./.exec(text)?.[0])).toEqual([
      "Three is done.",
      "Two is done.",
      "One is done.",
    ]);
    expect((await operations()).map(({ sub_agent }) => sub_agent)).toEqual([
      null,
      "one",
      "one/two",
      "one/two/three",
      null,
    ]);
  });

  it("only those may be delegated to that are offered to the one who asks", async () => {
    script("", handTo("five"), handTo("one"), answer);
    script("one", handTo("three"), call("SendMessage"), "No.");
    await expect(run()).resolves.toBe(true);
    expect(userText(requestsOf("")[1] as ModelRequest)).toContain(
      "there is no sub-agent five. Sub-agents: four, one, three, two.",
    );
    expect(toldTo("one", 1)).toContain("there is no sub-agent three. Sub-agents: two.");
  });

  it("the agent is told whom there is, and offered no delegation where there is nobody", async () => {
    script("", answer);
    await run();
    expect(requestsOf("")[0]?.body.messages[0]?.content).toContain("- four: does part four\n- one: does part one");
    await begin({ subAgents: ["two"] });
    script("", answer);
    await run();
    expect(requestsOf("")[1]?.body.messages[0]?.content).toContain("- two: does part two\n</agentGuide>");
  });

  it("a process that goes on with the turn goes on within the sub-agent", async () => {
    script("", handTo("one"));
    script("one", handTo("two"));
    script("two", call("Once"), call("Again"));
    let times = 0;
    const process = newProcess();
    const working = Promise.withResolvers<void>();
    goOn = ({ signal }) =>
      ++times < 2
        ? Promise.resolve()
        : new Promise((_resolve, reject) => {
            signal.addEventListener("abort", () => reject(signal.reason));
            working.resolve();
          });
    const ran = run(process);
    await working.promise;
    await process.close(0);
    await ran;
    goOn = async () => {};
    expect(model.requests).toHaveLength(4);
    script("two", "Two is done.");
    script("one", "One is done.");
    script("", answer);
    // Its changed file is for sub-agents that begin now.
    await run(newProcess({ shipped: new Map() }));
    expect(runs.map(({ context }) => context.key)).toEqual([0, 1, 1].map((index) => runs[index]?.context.key));
    expect(model.requests.map(subAgentOf)).toEqual(["", "one", "two", "two", "two", "one", ""]);
    expect(toldTo("two")).toContain("Once is done");
    expect(toldTo("two")).toContain("Again is done");
    expect(toldTo("")).toContain("One is done.");
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("a call of a sub-agent that may not be repeated is not, and it is told that its outcome is unknown", async () => {
    script("", handTo("one"));
    script("one", call("Once"));
    await interrupt();
    script("one", "Who knows.");
    script("", answer);
    await run();
    expect(runs).toHaveLength(1);
    expect(toldTo("one")).toContain(outcomeUnknown);
  });

  it("a process that dies before any statement of its own leaves nothing done or paid for twice", async () => {
    model.onEvery((request) => {
      const who = subAgentOf(request);
      const told = userText(request);
      if (who === "") return told.includes("ONE SAYS") ? answer(request) : handTo("one")(request);
      const steps = who === "one" ? [call("Once"), handTo("two")] : [call("Again"), call("Once")];
      return steps[errandOf(request).results.length]?.(request) ?? `${who.toUpperCase()} SAYS so`;
    });
    let deaths = 0;
    for (let at = 1; ; at++) {
      await begin({});
      runs = [];
      const before = model.requests.length;
      const { database: own, died } = mortal(database(), at);
      const end = await Promise.race([died, run(newProcess({}, own))]);
      if (end === "died") await run();
      expect(await turnRow(), `death ${at}`).toMatchObject({ state: "done", error: null });
      expect(await said()).toEqual(["done"]);
      const once = runs.filter(({ tool }) => tool === "Once");
      const rows = await operations();
      const unknown = rows.filter(({ state }) => state === "unknown").length;
      expect(rows.every(({ state }) => state === "done" || state === "unknown")).toBe(true);
      expect([unknown <= 1, once.length + unknown >= 2, once.length <= 2]).toEqual([true, true, true]);
      expect(rows.map(({ sub_agent }) => sub_agent).filter((who) => who !== null)).toHaveLength(4);
      // A call whose answer was not written down is made again; no other is.
      expect(model.requests.length - before).toBeLessThanOrEqual(9);
      if (end !== "died") break;
      deaths += 1;
    }
    expect(deaths).toBeGreaterThan(20);
  });

  it("a sub-agent that has finished is not asked again, and what it did is passed over", async () => {
    script("", handTo("one"), { hangs: true });
    script("one", call("Again"), "One is done.");
    const process = newProcess();
    const ran = run(process);
    await model.request((request) => subAgentOf(request) === "" && userText(request).includes("One is done."));
    await process.close(0);
    await ran;
    script("", call("Again"), answer);
    await run();
    expect(model.requests.map(subAgentOf)).toEqual(["", "one", "one", "", "", ""]);
    const ids = [...toldTo("", -2).matchAll(/functionCall id="fc\d+([.\d]*)"/g)].map(([, id]) => id);
    expect(ids).toEqual([".1"]);
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("one whose call is refused after a restart leaves nothing behind that the turn stumbles over", async () => {
    script("", handTo("one"));
    script("one", call("Again"));
    await interrupt();
    rights = await rightsOf(database(), { test: "none" });
    script("", "I may not.", "No.");
    await run();
    expect(toldTo("")).toContain("delegate was not carried out");
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("at its limit of steps it hands back what it wrote last", async () => {
    script("", handTo("one"), answer);
    script(
      "one",
      ...Array.from(
        { length: 10 },
        (_, n): Reply =>
          (request) => [`Step ${n}.`, { call: toolName(request, "Again") }],
      ),
    );
    await run();
    expect(requestsOf("one")).toHaveLength(10);
    expect(toldTo("")).toMatch(/its limit of 10 steps before it was done\.\s+The last that it wrote:\s+Step 9\./);
  });

  it("one whose context is full is shown anew what it did last", async () => {
    await begin({ approxContextCharsMax: 8_000 });
    script("", handTo("one"), answer);
    const long = (n: number) => (request: ModelRequest) => [`${n} `.repeat(700), call("Again")(request)];
    script("one", long(1), long(2), long(3), long(4), long(5), "One is done.");
    await run();
    const requests = requestsOf("one").map(({ body }) => body.messages);
    expect(requests.every((messages) => charsOf(messages) <= 8_000)).toBe(true);
    const anew = requests.slice(1).filter((messages) => messages.length === 2);
    expect(anew.length).toBeGreaterThan(0);
    expect(anew.every(([, shown]) => /<thought [^>]*truncated/.test(shown?.content ?? ""))).toBe(true);
    expect(toldTo("")).toContain("One is done.");
  });

  it("a turn of two hundred steps delegates nothing more", async () => {
    const all = (request: ModelRequest) => Array.from({ length: 10 }, () => handTo("one")(request));
    script("", all, all, all, all, all, all, all, answer);
    model.on((request) => subAgentOf(request) === "one", "One is done.");
    await run();
    const results = (await operations()).filter(({ tool }) => tool === "delegate").map(({ state }) => state);
    expect(results.filter((state) => state === "done").length).toBe(64);
    expect(results.slice(64)).toEqual(Array.from({ length: 6 }, () => "failed"));
    expect(toldTo("")).toContain("this turn has had 200 steps");
  });

  it("one whose model does not answer fails alone", async () => {
    script("", handTo("four"), answer);
    model.on(({ body }) => body.model === "other", { status: 401 });
    await run();
    expect(toldTo("")).toContain("It broke off: its model does not answer, it is misconfigured.");
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("its model calls are counted, and at the end of a budget the turn ends", async () => {
    const spent = { usage: { prompt_tokens: 900_000, completion_tokens: 10, total_tokens: 900_010 } };
    script("", handTo("one"));
    script("one", (request) => [{ call: toolName(request, "Again") }, spent]);
    await run(newProcess({ budgets: { agents: { [conversation.agent]: { tokens: 900_000 } } } }));
    expect(requestsOf("one")).toHaveLength(1);
    expect(await turnRow()).toMatchObject({ state: "done" });
    const used = await rows<{ tokens: number }>(
      `select sum(prompt_tokens)::int as tokens from usage where agent = '${conversation.agent}'`,
    );
    expect(used).toEqual([{ tokens: 901_000 }]);
    const results = await database().sql<{ result: string }[]>`
      select result from operations where agent = ${conversation.agent} order by id`;
    expect(results.map(({ result }) => result)).toEqual([
      expect.stringMatching(/^It broke off: The budget of .* is used up/),
      "Again is done",
    ]);
  });

  it("a stop ends it with its turn", async () => {
    script("", handTo("one"));
    script("one", ["I think", { hangs: true }] as Reply);
    const process = newProcess();
    const ran = run(process);
    const request = await model.request((one) => subAgentOf(one) === "one");
    await process.stop(conversation, "@you:test");
    await ran;
    await request.closed;
    expect(request.wasAborted).toBe(true);
    expect(await turnRow()).toMatchObject({ state: "cancelled" });
    expect(await operations()).toMatchObject([{ tool: "delegate", state: "interrupted" }]);
  });

  it("where people have to be asked, the turn is parked, and goes on within it", async () => {
    await begin({ mode: "read" });
    script("", handTo("one"));
    script("one", call("Once"));
    await run();
    expect(await turnRow()).toMatchObject({ state: "parked" });
    const [asking] = await database().sql<{ id: number; sub_agent: string }[]>`
      select id, sub_agent from operations where agent = ${conversation.agent} and state = 'asked'`;
    expect(asking?.sub_agent).toBe("one");
    await mind().operations.decide(asking?.id ?? 0, "approved", { userId: person });
    script("one", "One is done.");
    script("", answer);
    await run();
    expect(runs).toHaveLength(1);
    expect(model.requests.map(subAgentOf)).toEqual(["", "one", "one", ""]);
    expect(await turnRow()).toMatchObject({ state: "done", error: null });
  });

  it("a process that dies while one goes on with an approval leaves it carried out once, or says that it does not know", async () => {
    model.onEvery((request) => {
      if (subAgentOf(request) === "")
        return userText(request).includes("ONE SAYS") ? answer(request) : handTo("one")(request);
      return errandOf(request).results.length === 0 ? call("Once")(request) : "ONE SAYS so";
    });
    let deaths = 0;
    for (let at = 1; ; at++) {
      await begin({ mode: "read" });
      runs = [];
      await run();
      const asking = (await operations()).find(({ state }) => state === "asked");
      await mind().operations.decide(Number(asking?.id), "approved", { userId: person });
      const { database: own, died } = mortal(database(), at);
      const end = await Promise.race([died, run(newProcess({}, own))]);
      if (end === "died") await run();
      expect(await turnRow(), `death ${at}`).toMatchObject({ state: "done", error: null });
      const once = (await operations()).find(({ tool }) => tool === "Once");
      expect([once?.tool, once?.state === "unknown" || runs.length === 1, runs.length <= 1]).toEqual([
        "Once",
        true,
        true,
      ]);
      expect(["done", "unknown"]).toContain(once?.state);
      expect((await said()).filter((body) => body === "done")).toHaveLength(1);
      if (end !== "died") break;
      deaths += 1;
    }
    expect(deaths).toBeGreaterThan(10);
  });

  it("what it thinks and calls is told to people under its name, and not shown to the agent afterwards", async () => {
    script("", handTo("one"), answer);
    script("one", (request) => ["A secret thought.", { call: toolName(request, "Again") }], "One is done.");
    await run();
    const told = (await mind().history.findUntold(agent.name, 100)).filter(({ subAgent }) => subAgent === "one");
    expect(told.map(({ entry }) => /^<(\w+)/.exec(entry)?.[1])).toEqual([
      "thought",
      "functionCall",
      "functionResult",
      "thought",
    ]);
    await wake(database(), conversation, { requester: person });
    script("", answer);
    await run();
    expect(toldTo("")).toContain("One is done.");
    expect(toldTo("")).not.toContain("A secret thought.");
  });

  it("a person's command to delegate wakes the agent with it", async () => {
    const event = newEventId();
    const origin = {
      agent,
      roomId: conversation.roomId,
      thread: undefined,
      key: newKey(),
      chain: event,
      by: "person" as const,
      requesters: [person],
      sources: [conversation.roomId],
      taint: [],
      signal: new AbortController().signal,
    };
    const context = await toolContext(mind(), origin);
    await expect(context.delegate({ subAgent: "nobody" })).rejects.toThrow("there is no sub-agent nobody");
    const { wakes } = await context.delegate({ subAgent: "one" });
    expect(wakes).toMatchObject([
      { agent: agent.name, roomId: conversation.roomId, eventId: event, requester: person },
    ]);
    expect(wakes?.[0]?.note).toContain("call the function delegate for the sub-agent one");
  });
});
