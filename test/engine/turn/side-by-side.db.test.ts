import { afterEach, beforeEach, expect, it } from "vitest";
import { z } from "zod";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { defineTool, type ToolContext, type ToolOutcome } from "../../../src/engine/operations/tool.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { mortal } from "../../support/mortal-database.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say, toolName, userText } from "../../support/scripted-model.ts";

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let person: UserId;
  let conversation: Conversation;
  /** Begin and end of each run of a tool. */
  let course: string[];
  /** How a run of a tool goes on, by its path. */
  let goOn: (path: string, context: ToolContext) => Promise<Partial<ToolOutcome> | undefined>;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    rights = await rightsOf(database(), { test: "operate" });
    course = [];
    goOn = async () => undefined;
    await newConversation();
  });
  afterEach(() => model.stop());

  const newConversation = async (settings: object = {}) => {
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings(settings, "test") }, "test");
    conversation = { agent: name, roomId: newRoom() };
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person])
      await setMember(database(), conversation.roomId, userId, "join");
    await wake(database(), conversation, { requester: person });
  };
  const toolNamed = (name: string, kind: "read" | "create" | "delete", isRepeatable = true) =>
    defineTool({
      name,
      set: "core",
      description: "A tool under test",
      kind,
      isRepeatable,
      input: z.object({ path: z.string().describe("A path") }),
      async run({ path }, context) {
        course.push(`begin ${path}`);
        const outcome = await goOn(path, context);
        course.push(`end ${path}`);
        return { result: `result of ${path}`, ...outcome };
      },
    });
  const newProcess = (own: Database = database()) => {
    const tools = [
      sendMessage,
      toolNamed("Look", "read"),
      toolNamed("LookOnce", "read", false),
      toolNamed("Make", "create"),
      toolNamed("Remove", "delete"),
    ];
    const mind = mindOf(own, { modelUrl: model.url, rights, tools });
    return { mind, runner: new TurnRunner(mind, nobodyElse, () => {}) };
  };
  /** The model makes these calls, `Look a`, in its first step, and answers in its second. */
  const script = (...calls: string[]) => {
    const all = (request: ModelRequest) =>
      calls.map((call) => {
        const [tool = "", path] = call.split(" ");
        return { call: tool === "Nothing" ? tool : toolName(request, tool), arguments: { path } };
      });
    const hasResults = (request: ModelRequest) => /<functionResult/.test(userText(request));
    model.onEvery((request) =>
      hasResults(request) ? say(request, conversation.roomId, "done", { final: true }) : all(request),
    );
  };
  /** Each run under way waits until as many are. */
  const together = (count: number) => {
    const all = Promise.withResolvers<undefined>();
    let under = 0;
    goOn = async () => {
      under += 1;
      if (under === count) all.resolve(undefined);
      return all.promise;
    };
  };
  const results = () => {
    const request = model.requests.at(-1);
    return request?.body.messages.flatMap(({ role, content }) =>
      role === "tool" ? (/result of \w+/.exec(content)?.[0] ?? content) : [],
    );
  };
  const operations = async () => {
    const found = await new Operations(database()).newest(conversation, 20);
    return found.flatMap(({ tool, summary, state }) => (tool === "SendMessage" ? [] : `${tool} ${summary}: ${state}`));
  };
  const journal = async () => {
    const steps = await database().sql<{ name: string; state: string }[]>`
      select s.name, s.state from steps s join turns t on t.id = s.turn_id where t.agent = ${conversation.agent} order by n`;
    return steps.map(({ name, state }) => `${name.replace(/_\w+$/, "").replace("call ", "")} ${state}`);
  };

  it("calls of one step that read run at once, and their results are in the order of the calls", async () => {
    script("Look a", "Look b", "Look c");
    together(3);
    const whole = goOn;
    goOn = async (path, context) => {
      await whole(path, context);
      if (path === "a") await new Promise((resolve) => setImmediate(resolve));
      return undefined;
    };
    await newProcess().runner.run(conversation);
    expect(course.slice(0, 3).sort()).toEqual(["begin a", "begin b", "begin c"]);
    expect(results()).toEqual(["result of a", "result of b", "result of c"]);
    expect(await operations()).toEqual(["Look a: done", "Look b: done", "Look c: done"]);
    expect(await journal()).toEqual([
      ...["model done", "Look done", "Look done", "Look done"],
      ...["model done", "SendMessage done"],
    ]);
  });

  it("a call that changes something waits for those before it, and those behind it wait for it", async () => {
    script("Look a", "Look b", "Make c", "Look d");
    await newProcess().runner.run(conversation);
    expect(course.indexOf("begin c")).toBeGreaterThan(course.indexOf("end b"));
    expect(course.indexOf("begin c")).toBeGreaterThan(course.indexOf("end a"));
    expect(course.indexOf("begin d")).toBeGreaterThan(course.indexOf("end c"));
  });

  it("PreventParallelFunctionCalls lets only the first run", async () => {
    await newConversation({ agentFlags: "PreventParallelFunctionCalls" });
    script("Look a", "Look b");
    await newProcess().runner.run(conversation);
    expect(course).toEqual(["begin a", "end a"]);
  });

  it("the next step is tainted, and has the sources, as when they run one by one", async () => {
    script("Look a", "Look b", "Remove c");
    const own = person as string as RoomId;
    const contexts = new Map<string, ToolContext>();
    goOn = async (path, context) => {
      contexts.set(path, contexts.get(path) ?? context);
      return { taint: [`agents:/${path}`], sources: [own] };
    };
    await newProcess().runner.run(conversation);
    expect([...contexts.values()].map(({ taint }) => taint)).toEqual([[], []]);
    const [asked] = (await new Operations(database()).newest(conversation, 20)).filter(({ tool }) => tool === "Remove");
    expect(asked).toMatchObject({ state: "asked", taint: ["agents:/a", "agents:/b"] });
    expect(asked?.sources).toContain(own);
  });

  it("numbers of operations stand beside calls and results", async () => {
    script("Look a", "Nothing b", "Make c");
    await newProcess().runner.run(conversation);
    const numbers = (await new Operations(database()).newest(conversation, 20)).map(({ id }) => String(id));
    const [entries] = await database().sql<{ text: string }[]>`
      select string_agg(entry, ' ' order by e.n, part) as text from ephemeris e join turns t on t.id = e.turn_id
      where t.agent = ${conversation.agent}`;
    const beside = (name: string) =>
      [...(entries?.text ?? "").matchAll(new RegExp(`<${name} id="[^"]+" operation="(\\d+)"`, "g"))].map(
        ([, one]) => one,
      );
    const [look, nothing, make, answer] = beside("functionCall");
    expect([look, make, answer]).toEqual(numbers);
    expect(numbers).not.toContain(nothing);
    expect(beside("functionResult")).toEqual(numbers);
    const told = model.requests.at(-1)?.body.messages.filter(({ role }) => role === "tool");
    expect(told?.[0]?.content).toContain(`operation="${look}"`);
  });

  it("the layout seed has no numbers beside calls", async () => {
    await newConversation({ layout: "seed" });
    script("Look a");
    await newProcess().runner.run(conversation);
    expect(userText(model.requests[1] as ModelRequest)).toMatch(/<functionCall id="[^"]+" function="Look_/);
    expect(userText(model.requests[1] as ModelRequest)).toMatch(/<functionResult id="[^"]+">/);
  });

  // Once of eight runs on a busy machine it failed, and the cause is not known yet: a second failure is told.
  it("a process that dies before any statement of its own leaves each call done once, or says that it does not know", {
    retry: 1,
  }, async () => {
    let unknown = 0;
    let twice = 0;
    for (let at = 1; ; at++) {
      await newConversation();
      course = [];
      script("Look a", "LookOnce b", "Look c");
      const before = model.requests.length;
      const { database: own, died } = mortal(database(), at);
      if ((await Promise.race([died, newProcess(own).runner.run(conversation)])) !== "died") break;
      await newProcess().runner.run(conversation);
      const [a, b, c] = await operations();
      expect([a, c], `death ${at}`).toEqual(["Look a: done", "Look c: done"]);
      expect(b).toMatch(/^LookOnce b: (done|unknown)$/);
      expect(course.filter((line) => line === "begin b").length).toBeLessThanOrEqual(1);
      expect(await journal()).toEqual([
        ...["model done", "Look done", "LookOnce done", "Look done"],
        ...["model done", "SendMessage done"],
      ]);
      if (b?.endsWith("unknown")) unknown += 1;
      if (course.filter((line) => line === "begin c").length > 1) twice += 1;
      model.requests.splice(before);
    }
    expect(unknown).toBeGreaterThan(0);
    expect(twice).toBeGreaterThan(0);
  });

  it("a stop ends all of them, and says so of each", async () => {
    script("Look a", "Look b", "Look c");
    let under = 0;
    const all = Promise.withResolvers<void>();
    goOn = () => {
      under += 1;
      if (under === 3) all.resolve();
      return new Promise(() => {});
    };
    const { runner } = newProcess();
    const ran = runner.run(conversation);
    await all.promise;
    await runner.stop(conversation, "@somebody:test");
    await ran;
    expect(await operations()).toEqual(["Look a: interrupted", "Look b: interrupted", "Look c: interrupted"]);
  });

  it("a bug in one ends the turn, with what came before it written down", async () => {
    script("Look a", "Look b", "Look c");
    goOn = async (path, { signal }) => {
      if (path === "b") throw new Error("a bug");
      if (path === "c") await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return undefined;
    };
    await newProcess().runner.run(conversation);
    expect(await operations()).toEqual(["Look a: done", "Look b: failed", "Look c: interrupted"]);
  });

  it("each that has to be asked about asks when those before it are written, and one at a time", async () => {
    await newConversation({ mode: "none" });
    script("Look a", "Look b");
    await newProcess().runner.run(conversation);
    expect(await operations()).toEqual(["Look a: asked"]);
    const decide = async (index: number) => {
      const all = await new Operations(database()).newest(conversation, 20);
      await new Operations(database()).decide(all[index]?.id ?? 0, "approved", { userId: person });
    };
    await decide(0);
    await newProcess().runner.run(conversation);
    expect(await operations()).toEqual(["Look a: done", "Look b: asked"]);
    expect(course).toEqual(["begin a", "end a"]);
    await decide(1);
    await newProcess().runner.run(conversation);
    expect(await operations()).toEqual(["Look a: done", "Look b: done"]);
    expect(model.requests).toHaveLength(2);
  });
});
