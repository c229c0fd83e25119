import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, Conversation, EventId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { type Decision, type Operation, Operations } from "../../../src/domain/tables/operations.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { outcomeUnknown } from "../../../src/engine/operations/operation.ts";
import { defineTool, type ToolContext } from "../../../src/engine/operations/tool.ts";
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
  /** Runs of the tools under test, with what each was given; `goOn` says how they go on. */
  let runs: { tool: string; context: ToolContext }[];
  let goOn: (context: ToolContext) => Promise<void>;
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    rights = await rightsOf(database(), { test: "operate" });
    await newConversation();
  });
  afterEach(() => model.stop());

  const newConversation = async () => {
    runs = [];
    goOn = async () => {};
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
    conversation = { agent: name, roomId: newRoom() };
    const agent = await directory.find(name);
    for (const userId of [person, agent?.userId ?? person])
      await setMember(database(), conversation.roomId, userId, "join");
    await wake(database(), conversation, { requester: person });
  };

  /** In the mode `create`, an operation of kind `delete` asks. */
  const toolNamed = (name: string, isRepeatable: boolean, isImmediate = false) =>
    defineTool({
      name,
      set: "core",
      description: "A tool under test",
      kind: "delete",
      isRepeatable,
      isImmediate,
      input: z.object({ path: z.string().describe("A path") }),
      async run(_input, context) {
        runs.push({ tool: name, context });
        await goOn(context);
        return { result: `${name} is done` };
      },
    });
  /** A process of its own, as far as turns are concerned. */
  const newProcess = (own: Database = database()) => {
    const testTools = [toolNamed("Once", false), toolNamed("Again", true), toolNamed("Soon", true, true)];
    const tools = [sendMessage, ...testTools, { ...toolNamed("Resumed", false), mayResume: true }];
    const mind = mindOf(own, { modelUrl: model.url, rights, tools });
    return { runner: new TurnRunner(mind, nobodyElse, () => {}), mind };
  };
  const callOf = (request: ModelRequest, tool: string, path = "a") => ({
    call: toolName(request, tool),
    arguments: { path },
  });
  const answer = (request: ModelRequest) => say(request, conversation.roomId, "done", { final: true });
  /** The model calls the tool, and answers when it has its result. */
  const script = (tool: string) =>
    model.onEvery((request) => (toldOf(request) ? answer(request) : callOf(request, tool)));
  const toldOf = (request: ModelRequest) => /functionResult|is done/.test(userText(request));
  const turns = () => new Turns(database(), "a test");
  const operations = () => new Operations(database());
  const turnStates = async () => {
    const rows = await database().sql<{ state: string }[]>`
      select state from turns where agent = ${conversation.agent} order by id`;
    return rows.map(({ state }) => state);
  };
  /** The newest that is no answer. */
  const theOperation = async (): Promise<Operation> => {
    const found = (await operations().newest(conversation, 10)).findLast(({ tool }) => tool !== "SendMessage");
    if (!found) throw new Error("there is no operation");
    return found;
  };
  const said = async (pattern: string) => {
    const rows = await database().sql<{ body: string }[]>`
      select content->>'body' as body from outbox where room_id = ${conversation.roomId} and content->>'body' like ${pattern}`;
    return rows.map(({ body }) => body);
  };
  const cards = () => database().sql`
    select key from outbox where room_id = ${conversation.roomId} and key in (select card_key from operations)`;
  const decide = async (decision: Decision, because?: string) =>
    operations().decide((await theOperation()).id, decision, { userId: person, because });
  const ask = async (tool: string) => {
    script(tool);
    await newProcess().runner.run(conversation);
  };
  const lastRequest = () => userText(model.requests.at(-1) as ModelRequest);

  it("an operation that has to be asked for parks its turn, and nothing is run", async () => {
    await ask("Once");
    expect(await turnStates()).toEqual(["parked"]);
    expect(runs).toEqual([]);
    expect(await theOperation()).toMatchObject({
      state: "asked",
      tool: "Once",
      kind: "delete",
      input: { path: "a" },
      summary: "a",
      requesters: [person],
      cardRoom: conversation.roomId,
      decision: null,
      startedAt: null,
    });
    expect(await cards()).toHaveLength(1);
  });

  it("a parked turn does not hold up what comes after it", async () => {
    await ask("Once");
    model = await new ScriptedModel().start();
    model.onEvery(answer);
    await wake(database(), conversation, { requester: person });
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual(["parked", "done"]);
    const [request] = model.requests;
    expect(request && userText(request)).toContain("for approval");
  });

  it("an approved operation is run once, in the turn that asked, which then goes on", async () => {
    await ask("Once");
    expect(await decide("approved")).toEqual(conversation);
    expect(await turnStates()).toEqual(["ready"]);
    expect(await turns().findWaiting(conversation.agent)).toEqual([conversation]);
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual(["done"]);
    expect(runs).toHaveLength(1);
    expect(model.requests).toHaveLength(2);
    expect(lastRequest()).toContain("Once is done");
    expect(await theOperation()).toMatchObject({
      state: "done",
      decision: "approved",
      decidedBy: person,
      result: "Once is done",
    });
    expect(await said("done")).toHaveLength(1);
  });

  it.each(["approved", "denied", "expired"] as const)(
    "the agent is told that it goes on for an approval: %s",
    async (decision) => {
      await ask("Once");
      expect(lastRequest()).toContain('wakeReason="new event"');
      await decide(decision);
      await newProcess().runner.run(conversation);
      expect(lastRequest()).toContain('wakeReason="approval"');
      expect(lastRequest()).not.toContain('wakeReason="new event"');
      // It is the turn of those who had asked, as before.
      const [turn] = await database().sql`select reason, requesters from turns where agent = ${conversation.agent}`;
      expect(turn).toEqual({ reason: "approval", requesters: [person] });
    },
  );

  it("a question that is written with the thought that led to it costs no second one", async () => {
    await ask("Soon");
    const { turnId } = await theOperation();
    const steps = await database().sql`select name, state from steps where turn_id = ${turnId} order by n`;
    expect(steps).toMatchObject([{ name: "model", state: "done" }, { state: "asked" }]);
    await decide("approved");
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual(["done"]);
    expect(runs).toHaveLength(1);
    expect(model.requests).toHaveLength(2);
    expect(await database().sql`select n from usage where turn_id = ${turnId}`).toHaveLength(2);
  });

  it("a denied operation is not run, and the agent is told who denied it and why", async () => {
    await ask("Once");
    await decide("denied", "it is mine");
    await newProcess().runner.run(conversation);
    expect(runs).toEqual([]);
    expect(lastRequest()).toContain(`${person} has denied it: it is mine`);
    expect(await theOperation()).toMatchObject({ state: "refused", decidedBecause: "it is mine" });
  });

  it("one that nobody has decided in time is not run, and the agent is told so", async () => {
    await ask("Once");
    await database().sql`update operations set expires_at = now() where key = ${(await theOperation()).key}`;
    expect((await operations().findOverdue()).map(({ key }) => key)).toContain((await theOperation()).key);
    await operations().decide((await theOperation()).id, "expired", undefined);
    await newProcess().runner.run(conversation);
    expect(runs).toEqual([]);
    expect(lastRequest()).toContain("nobody has approved it in time");
    expect(await theOperation()).toMatchObject({ state: "expired", decision: null });
  });

  it("an approval does not count for another input", async () => {
    await ask("Once");
    await database().sql`
      update steps set result = jsonb_set(result, '{calls,0,arguments}', to_jsonb(${'{"path":"b"}'}::text))
      where turn_id = ${(await theOperation()).turnId} and name = 'model'`;
    await decide("approved");
    await newProcess().runner.run(conversation);
    expect(runs).toEqual([]);
    expect(await turnStates()).toEqual(["parked"]);
    expect(await operations().newest(conversation, 10)).toMatchObject([
      { state: "refused", input: { path: "a" }, decision: "approved" },
      { state: "asked", input: { path: "b" }, decision: null },
    ]);
    expect(await cards()).toHaveLength(2);
    await decide("approved");
    await newProcess().runner.run(conversation);
    expect(runs).toHaveLength(1);
    expect(await turnStates()).toEqual(["done"]);
  });

  it("a turn that goes on without a decision is parked again, and asks nobody twice", async () => {
    await ask("Once");
    await database().sql`update turns set state = 'running' where agent = ${conversation.agent}`;
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual(["parked"]);
    expect(await cards()).toHaveLength(1);
  });

  it("steps before and after parking count together", async () => {
    await database().sql`
      update files set text_content = jsonb_set(text_content::jsonb, '{maxIterations}', '3')::text
      where share = 'agents' and path = ${`/${conversation.agent}/agent.json`}`;
    model.onEvery((request) => callOf(request, "Again"));
    for (let asked = 0; asked < 3; asked++) {
      await newProcess().runner.run(conversation);
      const open = (await operations().open(conversation)).at(-1);
      await operations().decide(open?.id ?? 0, "approved", { userId: person });
    }
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual(["done"]);
    expect(model.requests).toHaveLength(3);
    expect(await said("%limit of my steps%")).toHaveLength(1);
  });

  it("stopping ends what a conversation waits for, and the agent is told", async () => {
    await ask("Once");
    const { runner } = newProcess();
    expect(await runner.stop(conversation, "@you:test")).toHaveLength(1);
    expect(await turnStates()).toEqual(["cancelled"]);
    expect(await theOperation()).toMatchObject({ state: "interrupted", error: "stopped by @you:test" });
    expect(await decide("approved")).toBeUndefined();
    await wake(database(), conversation, { requester: person });
    await runner.run(conversation);
    expect(lastRequest()).toContain("Interrupted: stopped by @you:test");
    expect(runs).toEqual([]);
  });

  it.each(["Once", "Again"])(
    "stopping while %s is at work records it as interrupted, whether the tool minds it or not",
    async (tool) => {
      await ask(tool);
      await decide("approved");
      const working = Promise.withResolvers<void>();
      goOn = () => {
        working.resolve();
        return new Promise(() => {});
      };
      const { runner } = newProcess();
      const ran = runner.run(conversation);
      await working.promise;
      await runner.stop(conversation, "@you:test");
      await ran;
      expect(await turnStates()).toEqual(["cancelled"]);
      expect(await theOperation()).toMatchObject({ state: "interrupted" });
      const entries = await database().sql`
      select entry from ephemeris where turn_id = ${(await theOperation()).turnId} and entry like '%Interrupted%'`;
      expect(entries).toHaveLength(1);
    },
  );

  it("at most ten turns of a conversation wait; what is asked beyond is refused", async () => {
    script("Once");
    for (let turn = 0; turn < 10; turn++) {
      await newProcess().runner.run(conversation);
      await wake(database(), conversation, { requester: person });
      model = await new ScriptedModel().start();
      script("Once");
    }
    model.onEvery((request) =>
      userText(request).includes("already wait") ? answer(request) : callOf(request, "Once"),
    );
    await newProcess().runner.run(conversation);
    expect(await turnStates()).toEqual([...Array.from({ length: 10 }, () => "parked"), "done"]);
  });

  describe("where the message that the turn works on changes while the model thinks", () => {
    const eventIdOf = async () => {
      const [row] = await database().sql<{ eventId: EventId }[]>`
        select event_id as "eventId" from wakes where agent = ${conversation.agent}`;
      return row?.eventId ?? ("" as EventId);
    };
    const change = async (how: "edited" | "taken back") => {
      const [eventId, events] = [await eventIdOf(), new Events(database())];
      if (how === "edited") await events.applyEdit(eventId, { msgtype: "m.text", body: "rather b" });
      else await events.redact(eventId);
      await operations().requestChanged(eventId);
    };

    it.each([["Once"], ["Soon"]])("%s is asked for only once the agent has seen its edit", async (tool) => {
      model.on(
        () => true,
        async (request) => {
          await change("edited");
          return callOf(request, tool);
        },
        { times: 1 },
      );
      model.onEvery((request) => callOf(request, tool, "b"));
      await newProcess().runner.run(conversation);
      expect(lastRequest()).toContain("rather b");
      expect(lastRequest()).toContain("was edited or taken back meanwhile");
      expect(await operations().newest(conversation, 10)).toMatchObject([
        { state: "refused", input: { path: "a" } },
        { state: "asked", input: { path: "b" } },
      ]);
      expect(await turnStates()).toEqual(["parked"]);
    });

    it("nothing is asked for any more once it is taken back", async () => {
      let calls = 0;
      model.onEvery(async (request) => {
        if (calls === 0) await change("taken back");
        return calls++ < 2 ? callOf(request, "Once") : answer(request);
      });
      await newProcess().runner.run(conversation);
      expect(await turnStates()).toEqual(["done"]);
      expect((await operations().newest(conversation, 10)).map(({ state }) => state)).toEqual([
        "refused",
        "refused",
        "done",
      ]);
      expect(await cards()).toEqual([]);
    });
  });

  describe("a process that dies before any statement of its own", () => {
    it.each(["Once", "Again", "Resumed"])(
      "leaves one question, one execution of %s and one answer, or says that it does not know",
      async (tool) => {
        const dieAt = async (at: number): Promise<boolean> => {
          const { database: own, died } = mortal(database(), at);
          return (await Promise.race([died, newProcess(own).runner.run(conversation)])) === "died";
        };
        /** Runs the conversation's next stretch in a process that dies at this statement, and then in one that does not. */
        const stretch = async (at: number): Promise<boolean> => {
          const isMortal = await dieAt(at);
          if (isMortal) await newProcess().runner.run(conversation);
          return isMortal;
        };
        let unknown = 0;
        let deaths = 0;
        for (const part of ["asking", "going on"] as const) {
          for (let at = 1; ; at++) {
            await newConversation();
            script(tool);
            const before = model.requests.length;
            let hasDied = part === "asking" ? await stretch(at) : await stretch(1_000);
            expect(await turnStates(), `${part} ${at}`).toEqual(["parked"]);
            expect(await cards()).toHaveLength(1);
            await decide("approved");
            if (part === "going on") hasDied = await stretch(at);
            else await stretch(1_000);
            expect(await turnStates(), `${part} ${at}`).toEqual(["done"]);
            const { state, result } = await theOperation();
            if (state === "unknown") {
              unknown += 1;
              expect([runs.length <= 1, result]).toEqual([true, outcomeUnknown]);
            } else {
              expect([state, result]).toEqual(["done", `${tool} is done`]);
              if (tool === "Once") expect(runs).toHaveLength(1);
              expect(new Set(runs.map(({ context }) => context.key)).size).toBe(1);
            }
            expect(await cards()).toHaveLength(1);
            expect(await said("done")).toHaveLength(1);
            // A call whose answer was not written down is made again; no other is.
            expect(model.requests.length - before).toBeLessThanOrEqual(3);
            if (!hasDied) break;
            deaths += 1;
          }
        }
        expect(deaths).toBeGreaterThan(20);
        if (tool !== "Once") expect(unknown).toBe(0);
        else expect(unknown).toBeGreaterThan(0);
      },
    );
  });
});
