import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { type AgentName, type Conversation, HOME, type UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { formatPath } from "../../../src/domain/files/path.ts";
import { workingFile } from "../../../src/domain/files/working-files.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { type AgentRow, Agents } from "../../../src/domain/tables/agents.ts";
import type { Effects } from "../../../src/domain/tables/effects.ts";
import { IdleConversations } from "../../../src/domain/tables/idle-conversations.ts";
import { SilenceTable, waitMost } from "../../../src/domain/tables/silences.ts";
import { sensor as time } from "../../../src/edges/sensors/time.ts";
import { tool as fsRead } from "../../../src/edges/tools/fs-read.ts";
import { tool as remember } from "../../../src/edges/tools/remember.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { tool as setFact } from "../../../src/edges/tools/set-fact.ts";
import { tool as todosAdd } from "../../../src/edges/tools/todos-add.ts";
import { tool as todosDone } from "../../../src/edges/tools/todos-done.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { TimeKeeper } from "../../../src/engine/turn/time-keeper.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, settleEvent, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say, toolName, userText } from "../../support/scripted-model.ts";

const minute = 60;

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let conversation: Conversation;
  let agent: AgentRow;
  let person: UserId;
  const tools = [sendMessage, fsRead, remember, setFact, todosAdd, todosDone];
  const followUps = { followUpAfterSeconds: 10 * minute };

  const begin = async (settings: object = followUps) => {
    const [name, owner] = [newKey().replace(" ", "") as AgentName, newUser()];
    person = newUser();
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings(settings, "test") }, "test");
    conversation = { agent: name, roomId: newRoom() };
    const found = await directory.find(name);
    if (!found) throw new Error("no agent");
    agent = found;
    for (const userId of [person, agent.userId]) await setMember(database(), conversation.roomId, userId, "join");
  };
  beforeEach(async () => {
    model = await new ScriptedModel().start();
    rights = await rightsOf(database(), { test: "chat" });
    await begin();
  });
  afterEach(() => model.stop());

  const forbidAll = async () => {
    rights = await rightsOf(database(), {});
  };
  const silences = () => new SilenceTable(database());
  /** A process of its own; `whileRinging` happens after it has found what is due. */
  const newKeeper = (whileRinging: () => Promise<void> = async () => {}) => {
    const woken: Conversation[] = [];
    const keeper = new TimeKeeper({
      silences: silences(),
      idle: new IdleConversations(database()),
      sensors: [time],
      directory: new AgentDirectory(database(), systemClock, silentLog),
      rights,
      clock: systemClock,
      log: silentLog,
      readMissed: whileRinging,
      onWoken: (conversations) => woken.push(...conversations),
    });
    return { keeper, woken };
  };
  const ring = () => newKeeper().keeper.ring();
  const tidy = () => newKeeper().keeper.tidy();
  const runner = () => new TurnRunner(mindOf(database(), { modelUrl: model.url, rights, tools }), nobodyElse, () => {});
  const work = () => runner().run(conversation);
  /** A person's message, and the agent's turn about it. */
  const ask = async (body = "hello") => {
    await wake(database(), conversation, { requester: person }, body);
    await work();
  };
  const says = (content: string) => (request: ModelRequest) =>
    say(request, conversation.roomId, content, { final: true });
  const calls = (name: string, args: object) => (request: ModelRequest) => ({
    call: toolName(request, name),
    arguments: args,
  });
  /** Time goes by. */
  const pass = async (seconds: number) => {
    const { agent: name, roomId } = conversation;
    const { sql } = database();
    const ago = `${seconds} seconds`;
    await sql`update silences set since = since - ${ago}::interval, next_at = next_at - ${ago}::interval where agent = ${name}`;
    await sql`update rooms set last_shown_at = last_shown_at - ${ago}::interval where room_id = ${roomId}`;
    await sql`update turns set started_at = started_at - ${ago}::interval, ended_at = ended_at - ${ago}::interval where agent = ${name}`;
    await sql`update conversations set quiet_until = quiet_until - ${ago}::interval, tidied_at = tidied_at - ${ago}::interval
      where agent = ${name}`;
  };
  const waiting = async () => {
    const rows = await database().sql<{ reason: string; requester: UserId; chain: string; note: string | null }[]>`
      select reason, requester, chain, note from wakes where agent = ${agent.name} and turn_id is null order by id`;
    return [...rows];
  };
  const reasons = async () => (await waiting()).map(({ reason }) => reason);
  const rows = () =>
    database().sql`select question_at, promise_at, rung, wait_seconds from silences where agent = ${agent.name}`;
  const spoken = async () => {
    const said = await database().sql<{ body: string }[]>`
      select content->>'body' as body from outbox where sender = ${agent.userId} and kind = 'message' order by id`;
    return said.map(({ body }) => body);
  };
  const shown = (index = -1) => userText(model.requests.at(index) as ModelRequest);
  /** Something that a person sends without meaning the agent. */
  const mutter = (fields: object = {}, effects?: Effects) =>
    settleEvent(database(), { roomId: conversation.roomId, sender: person, ...fields }, effects);

  describe("a question that nobody answers", () => {
    beforeEach(async () => {
      model.on(() => true, says("Which colour?"), { times: 1 });
      await ask();
    });

    it("wakes the agent once after the silence, with the reason and what is open", async () => {
      await pass(9 * minute);
      await ring();
      expect(await waiting()).toEqual([]);
      await pass(minute);
      await ring();
      await ring();
      const [wakeUp, ...others] = await waiting();
      expect(others).toEqual([]);
      expect(wakeUp).toMatchObject({ reason: "quiet for 10 minutes", requester: person });
      model.onEvery(says("Still there"));
      await work();
      expect(shown()).toContain('wakeReason="quiet for 10 minutes"');
      expect(shown()).toMatch(
        /Nobody has said anything here for 10 minutes\. Left open: your question of [\d-]* ?\d\d:\d\d\./,
      );
      expect(shown()).toContain("you are woken again in 20 minutes");
      expect(await spoken()).toEqual(["Which colour?", "Still there"]);
    });

    it("wakes again after twice as long each time, until that is more than a day; what the agent asks then begins nothing anew", async () => {
      model.onEvery(says("And now?"));
      const waits: number[] = [];
      for (let wait = 10 * minute; wait <= waitMost; wait *= 2) {
        await pass(wait - minute);
        await ring();
        expect(await waiting()).toEqual([]);
        await pass(minute);
        await ring();
        expect(await reasons()).toHaveLength(1);
        await work();
        waits.push(wait / minute);
      }
      expect(waits).toEqual([10, 20, 40, 80, 160, 320, 640, 1280]);
      expect(shown()).toContain("You are not woken for it again.");
      await pass(10 * waitMost);
      await ring();
      expect(await waiting()).toEqual([]);
      expect(await rows()).toHaveLength(0);
    });

    it("wakes once, whichever of four processes is first", async () => {
      await pass(10 * minute);
      await Promise.all([1, 2, 3, 4].map(ring));
      expect(await waiting()).toHaveLength(1);
    });

    it.each([
      ["message", {}, undefined],
      ["reaction, which is not shown", { type: "m.reaction", content: {} }, {}],
      ["encrypted message", { type: "m.room.encrypted", content: {} }, {}],
    ])("wakes nobody after a person's %s", async (_, fields, effects) => {
      await mutter(fields, effects);
      await pass(11 * minute);
      await ring();
      expect(await waiting()).toEqual([]);
      expect(await rows()).toHaveLength(0);
    });

    it("wakes nobody if a person's word comes while it is looked at", async () => {
      await pass(10 * minute);
      await newKeeper(async () => void (await mutter({ type: "m.reaction", content: {} }))).keeper.ring();
      expect(await waiting()).toEqual([]);
    });

    it("is not answered by another agent, whose words make it wait", async () => {
      await pass(9 * minute);
      const other = newUser().replace("@", "@agent_") as UserId;
      await setMember(database(), conversation.roomId, other, "join");
      await settleEvent(database(), { roomId: conversation.roomId, sender: other });
      await pass(9 * minute);
      await ring();
      expect(await waiting()).toEqual([]);
      await pass(minute);
      await ring();
      expect(await reasons()).toEqual(["quiet for 10 minutes"]);
    });

    it("is over once the agent has answered what the person said next", async () => {
      model.on(() => true, says("Fine."), { times: 1 });
      await ask("green");
      expect(await rows()).toHaveLength(0);
    });

    it("waits while the agent is paused, and while it is at work", async () => {
      const agents = new Agents(database());
      await pass(10 * minute);
      await agents.setPaused(agent.name, true);
      await ring();
      await agents.setPaused(agent.name, false);
      await database().sql`update turns set state = 'parked' where agent = ${agent.name}`;
      await ring();
      expect(await waiting()).toEqual([]);
      await database().sql`update turns set state = 'done' where agent = ${agent.name}`;
      await ring();
      expect(await waiting()).toHaveLength(1);
    });

    it.each([
      ["the agent has left", async () => setMember(database(), conversation.roomId, agent.userId, "leave")],
      ["the person has left", async () => setMember(database(), conversation.roomId, person, "leave")],
      ["the agent was deleted", async () => new Agents(database()).remove(agent.name)],
      ["the person may not talk to agents any more", async () => forbidAll()],
      ["people want quiet", async () => silences().hush(conversation, "always")],
      ["people want quiet for an hour", async () => silences().hush(conversation, new Date(Date.now() + 3_600_000))],
    ])("wakes nobody where %s", async (_, happens) => {
      await happens();
      await pass(10 * minute);
      await ring();
      expect(await waiting()).toEqual([]);
      expect(await rows()).toHaveLength(0);
    });

    it("acts for the person who had asked, not for the agent's owner", async () => {
      await pass(10 * minute);
      await ring();
      model.onEvery({ text: "I wait." });
      await work();
      const [turn] = await database().sql`
        select requesters, chain from turns where agent = ${agent.name} order by id desc limit 1`;
      expect(turn).toMatchObject({ requesters: [person], chain: expect.stringMatching(/^quiet:\d+$/) });
    });

    it("does not hold up a person's word that comes with it", async () => {
      await pass(10 * minute);
      await ring();
      model.onEvery(says("Good."));
      await ask("green");
      const [turn] = await database()
        .sql`select reason from turns where agent = ${agent.name} order by id desc limit 1`;
      expect(turn).toMatchObject({ reason: "new event" });
      expect(await waiting()).toEqual([]);
      expect(await rows()).toHaveLength(0);
    });

    it("lets the agent say nothing, without a reminder", async () => {
      await pass(10 * minute);
      await ring();
      const before = model.requests.length;
      model.onEvery({ text: "I leave them alone." });
      await work();
      expect(model.requests).toHaveLength(before + 1);
      expect(await spoken()).toEqual(["Which colour?"]);
    });
  });

  it("where quiet is wanted, nothing is left open until its time is over, or somebody ends it", async () => {
    model.onEvery(says("Which colour?"));
    await silences().hush(conversation, new Date(Date.now() + 3_600_000));
    await ask();
    expect(await rows()).toHaveLength(0);
    expect(await silences().hushedUntil(conversation)).toBeInstanceOf(Date);
    await pass(3_601);
    expect(await silences().hushedUntil(conversation)).toBeUndefined();
    await ask();
    expect(await rows()).toHaveLength(1);
    await silences().hush(conversation, "always");
    expect(await silences().hushedUntil(conversation)).toBe("always");
    await silences().hush(conversation, null);
    await ask();
    expect(await rows()).toHaveLength(1);
  });

  it("a promise is left open, and so is a todo, which closes when it is done", async () => {
    model.on(() => true, says("I will look."), { times: 1 });
    await ask();
    expect(await rows()).toMatchObject([{ question_at: null, promise_at: expect.any(Date) }]);
    model.on(() => true, calls("todos_add", { name: "look" }), { times: 1 });
    model.on(() => true, says("Noted."), { times: 1 });
    await begin({ ...followUps, tools: ["core", "planner"] });
    await ask();
    expect(await rows()).toMatchObject([{ question_at: null, promise_at: null }]);
    await pass(10 * minute);
    await ring();
    expect((await waiting())[0]?.note).toContain("Left open: todo 1.");
    model.onEvery({ text: "I wait." });
    await work();
    await database().sql`update todos set done_at = now() where agent = ${agent.name}`;
    await pass(20 * minute);
    await ring();
    expect(await waiting()).toEqual([]);
    expect(await rows()).toHaveLength(0);
  });

  it("what an agent asks because of another agent is not followed up", async () => {
    model.onEvery(says("Which colour?"));
    const other = newUser().replace("@", "@agent_") as UserId;
    await wake(database(), conversation, { requester: person, chain: "an older event" });
    await work();
    expect(await spoken()).toEqual(["Which colour?"]);
    expect(await rows()).toHaveLength(0);
    expect(other).toBeDefined();
  });

  it("what an agent asks because of a schedule is followed up, for whoever made that", async () => {
    const wakeUp = {
      key: newKey(),
      agent: agent.name,
      roomId: conversation.roomId,
      reason: "schedule",
      requester: person,
    };
    await settleEvent(
      database(),
      { roomId: newRoom() },
      { wakes: [{ ...wakeUp, reason: "schedule", chain: "schedule:1" }] },
    );
    model.onEvery(says("Did you take your pills?"));
    await work();
    await pass(10 * minute);
    await ring();
    expect(await waiting()).toMatchObject([{ reason: "quiet for 10 minutes", requester: person }]);
  });

  it("an agent that follows nothing up writes no rows", async () => {
    await begin({});
    model.onEvery(says("Which colour? I will see."));
    await ask();
    expect(await rows()).toHaveLength(0);
  });

  it("an agent that follows nothing up any more is not woken", async () => {
    model.onEvery(says("Which colour?"));
    await ask();
    await database().sql`
      update files set text_content = '{}', version = version + 1 where share = 'agents' and path = ${`/${agent.name}/agent.json`}`;
    await pass(10 * minute);
    await ring();
    expect(await waiting()).toEqual([]);
    expect(await rows()).toHaveLength(0);
  });

  it("where the text of a turn is its answer, a dash says nothing", async () => {
    await begin({ ...followUps, answer: "text" });
    model.on(() => true, { text: "Which colour?" }, { times: 1 });
    await ask();
    await pass(10 * minute);
    await ring();
    model.on(() => true, { text: "-" }, { times: 1 });
    await work();
    expect(shown()).toContain("answer with a single dash");
    await pass(20 * minute);
    await ring();
    model.on(() => true, { text: "Hello?" }, { times: 1 });
    await work();
    expect(await spoken()).toEqual(["Which colour?", "Hello?"]);
  });

  it("the agent is told how long it was quiet before somebody spoke, behind all that providers may keep", async () => {
    model.onEvery(says("Fine."));
    const at = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    await mutter({ sentAt: at(200) });
    const event = await mutter({ sentAt: at(1) });
    await wake(database(), conversation, { requester: person, eventId: event.eventId, position: event.position });
    await work();
    const text = shown();
    expect(text).toMatch(/<timestamp [^>]*quietFor="3 hours"/);
    expect(text.indexOf("quietFor")).toBeGreaterThan(text.lastIndexOf("</log>"));
  });

  describe("the default mode", () => {
    const afterSeconds = 3_600;
    const placeOf = () => formatPath(workingFile(conversation, "facts.json"));
    const files = () =>
      new FileSystem(shares(database()), actorOf(agent, conversation.roomId, { requesters: [person] }), newKey());
    const facts = async () => (await files().read(placeOf())).text;
    beforeEach(async () => {
      await begin({
        defaultMode: { afterSeconds },
        tools: ["core", "memory", "planner"],
        models: { read: { name: "cheap" } },
      });
      model.on(() => true, says("Hello."), { times: 1 });
      await ask("I like green");
    });

    it("wakes the agent once where nothing has happened for long, with tools to tidy alone, and a cheap model", async () => {
      await pass(afterSeconds - 10);
      await tidy();
      expect(await waiting()).toEqual([]);
      await pass(20);
      await Promise.all([1, 2, 3].map(tidy));
      expect(await waiting()).toMatchObject([{ reason: "default mode", requester: agent.owner }]);
      model.on(() => true, calls("set_fact", { key: "colour", value: "green" }), { times: 1 });
      model.on(() => true, { text: "Tidy." }, { times: 1 });
      await work();
      expect(shown()).toContain('wakeReason="default mode"');
      const { body } = model.requests.at(-1) as ModelRequest;
      expect(body.model).toBe("cheap");
      const names = (body.tools ?? []).map(({ function: { name } }) => name.replace(/_[^_]*$/, "")).toSorted();
      expect(names).toEqual(["Remember", "set_fact", "todos_done"]);
      expect(JSON.parse((await facts()) ?? "")).toEqual({ colour: "green" });
      expect(await spoken()).toEqual(["Hello."]);
      await pass(100 * afterSeconds);
      await tidy();
      expect(await waiting()).toEqual([]);
    });

    it("tidies again only where something has happened since", async () => {
      await pass(afterSeconds + 10);
      await tidy();
      model.onEvery({ text: "Tidy." });
      await work();
      model.on(() => true, says("Hello again."), { times: 1 });
      await ask("me again");
      await pass(afterSeconds + 10);
      await tidy();
      expect(await reasons()).toEqual(["default mode"]);
    });

    it("lets the agent say nothing and reach nothing else, whatever its model calls", async () => {
      await pass(afterSeconds + 10);
      await tidy();
      model.on(
        () => true,
        (request) => ({
          call: `SendMessage_${agent.suffix}`,
          arguments: { roomId: conversation.roomId, content: userText(request).slice(0, 5) },
        }),
        { times: 1 },
      );
      model.on(
        () => true,
        () => ({ call: `FS_Read_${agent.suffix}`, arguments: { path: "agents:/other/persona.md" } }),
        { times: 1 },
      );
      model.on(() => true, calls("Remember", { content: "x", shareable: true }), { times: 1 });
      model.onEvery({ text: "Done." });
      await work();
      const told = JSON.stringify(model.requests.at(-1)?.body.messages);
      expect(told).toContain("There is no function SendMessage");
      expect(told).toContain("There is no function FS_Read");
      expect(told).toContain("nothing is remembered for other rooms");
      expect(await spoken()).toEqual(["Hello."]);
      const operations = await database()
        .sql`select tool from operations where agent = ${agent.name} and state = 'asked'`;
      expect(operations).toHaveLength(0);
    });

    it("shows the agent its facts of the conversation, and nothing from behind a wall", async () => {
      model.on(() => true, calls("set_fact", { key: "colour", value: "green" }), { times: 1 });
      model.on(() => true, says("Noted."), { times: 1 });
      await ask();
      expect(shown()).not.toContain('name="facts.json"');
      const first = conversation;
      conversation = { agent: agent.name, roomId: newRoom() };
      person = newUser();
      for (const userId of [person, agent.userId]) await setMember(database(), conversation.roomId, userId, "join");
      model.on(() => true, calls("set_fact", { key: "sound", value: "loud" }), { times: 1 });
      model.on(() => true, says("Noted."), { times: 1 });
      await ask();
      conversation = first;
      await pass(afterSeconds + 10);
      await tidy();
      model.on(() => true, { text: "Tidy." }, { times: 1 });
      await work();
      expect(shown()).toMatch(/<workingFile name="facts\.json"[^>]*>{\n\s*"colour": "green"\n\s*}<\/workingFile>/);
      expect(shown()).not.toContain("loud");
    });

    it("says nothing where the last text of a turn is its answer, either", async () => {
      await begin({ defaultMode: { afterSeconds }, answer: "text" });
      model.on(() => true, { text: "Hi." }, { times: 1 });
      await ask();
      await pass(afterSeconds + 10);
      await tidy();
      model.onEvery({ text: "All is tidy." });
      await work();
      expect(await spoken()).toEqual(["Hi."]);
    });

    it("gives way to a person's word, and takes none into its own turn", async () => {
      await pass(afterSeconds + 10);
      await tidy();
      model.onEvery(says("Here I am."));
      await ask("are you there?");
      const [turn] = await database()
        .sql`select reason from turns where agent = ${agent.name} order by id desc limit 1`;
      expect(turn).toMatchObject({ reason: "new event" });
      expect(await spoken()).toEqual(["Hello.", "Here I am."]);
    });

    it("leaves a person's word that comes meanwhile to the next turn, which has all tools", async () => {
      await pass(afterSeconds + 10);
      await tidy();
      model.on(
        () => true,
        async (request) => {
          await wake(database(), conversation, { requester: person }, "are you there?");
          return calls("set_fact", { key: "a", value: "b" })(request);
        },
        { times: 1 },
      );
      model.on(() => true, { text: "Tidy." }, { times: 1 });
      await work();
      expect(shown()).not.toContain("are you there?");
      expect(await reasons()).toEqual(["new event"]);
      model.onEvery(says("Here I am."));
      await work();
      expect(await spoken()).toEqual(["Hello.", "Here I am."]);
    });

    it("has a budget of its own, and is not begun once that is spent", async () => {
      await begin({ defaultMode: { afterSeconds, budget: { tokens: 2_000 } } });
      model.on(() => true, says("Hello."), { times: 1 });
      await ask();
      await pass(afterSeconds + 10);
      await tidy();
      const before = model.requests.length;
      model.onEvery({ text: "Tidy." });
      await work();
      expect(model.requests).toHaveLength(before);
      const [turn] = await database()
        .sql`select reason, state from turns where agent = ${agent.name} order by id desc limit 1`;
      expect(turn).toMatchObject({ reason: "default mode", state: "done" });
      model.on(() => true, says("Hello again."), { times: 1 });
      await ask();
      await pass(afterSeconds + 10);
      const spend = (tokens: number) =>
        database().sql`update spending set tokens = ${tokens} where scope = 'default mode' and key = ${agent.name}`;
      await spend(2_000);
      await tidy();
      expect(await waiting()).toEqual([]);
      await spend(1_999);
      await tidy();
      expect(await reasons()).toEqual(["default mode"]);
    });

    it("is left to agents that have it, are not paused, and are in the room", async () => {
      await pass(afterSeconds + 10);
      await new Agents(database()).setPaused(agent.name, true);
      await tidy();
      await new Agents(database()).setPaused(agent.name, false);
      await setMember(database(), conversation.roomId, agent.userId, "leave");
      await pass(afterSeconds + 10);
      await tidy();
      await begin({});
      model.on(() => true, says("Hello."), { times: 1 });
      await ask();
      await pass(1_000_000);
      await tidy();
      expect(await waiting()).toEqual([]);
    });

    it("also comes at home", async () => {
      conversation = { agent: agent.name, roomId: HOME };
      await new Agents(database()).setTimer(agent.name, 60);
      await database().sql`update agents set last_turn_at = now() - interval '61 seconds' where name = ${agent.name}`;
      await new Agents(database()).wakeByTimer();
      model.on(() => true, { text: "Nothing to do." }, { times: 1 });
      await work();
      await database().sql`update conversations set tidied_at = now() where agent = ${agent.name} and room_id <> ''`;
      await pass(afterSeconds + 10);
      await tidy();
      expect(await reasons()).toEqual(["default mode"]);
    });
  });
});
