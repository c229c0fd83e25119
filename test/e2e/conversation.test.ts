import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { newMessages, say } from "../support/scripted-model.ts";
import { agentOf, answer, callsOf, historyOf, newsOf, roomOf, turnOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  const helper = () => stage.agentId();
  const requestsIn = (room: string) => stage.model.requests.filter((request) => roomOf(request) === room);
  const saidIn = async (room: string, by = helper()) =>
    (await ann.messages(room)).filter(({ sender }) => sender === by).map(({ body }) => body);

  beforeAll(async () => {
    stage = await Stage.set({ database, agents: { helper: {}, other: {} } });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    stage.model.on("what time", (request) => answer(request, "noon"));
  });
  afterAll(() => stage.strike());

  describe("in company", () => {
    let room: string;
    beforeAll(async () => {
      room = await stage.room(ann, [ben], ["helper"]);
    });

    it("an agent that is mentioned answers in that room, and nowhere else", async () => {
      const elsewhere = await stage.directRoom(ann);
      await ann.mention(room, helper(), "what time is it?");
      await ben.waitForMessage(room, ({ body }) => body === "noon");
      expect(await saidIn(room)).toEqual(["noon"]);
      expect(await saidIn(elsewhere)).toEqual([]);
    });

    it("a question in a thread is answered there, although the model names none, and elsewhere it looks like a reply", async () => {
      const root = await ann.say(room, "plans");
      const asked = await ann.thread(room, root, "and what time?", { "m.mentions": { user_ids: [helper()] } });
      const inThread = ({ sender, content }: { sender: string; content: Readonly<Record<string, unknown>> }) =>
        sender === helper() && content["m.relates_to"] !== undefined;
      const { content } = await ann.waitForMessage(room, inThread);
      expect(content["m.relates_to"]).toEqual({
        rel_type: "m.thread",
        event_id: root,
        is_falling_back: true,
        "m.in_reply_to": { event_id: asked },
      });
    });

    it("a reply to the agent's message is answered without a mention", async () => {
      stage.model.on("are you sure", (request) => answer(request, "quite sure"));
      const { id } = await ann.waitForMessage(room, ({ body }) => body === "noon");
      await ben.reply(room, id, "are you sure?");
      await ann.waitForMessage(room, ({ body }) => body === "quite sure");
    });

    it("the agent's name at the very start is enough", async () => {
      stage.model.on("a joke", (request) => answer(request, "knock knock"));
      await ann.say(room, "Helper, a joke please");
      await ann.waitForMessage(room, ({ body }) => body === "knock knock");
    });

    it("what is not addressed to the agent causes no model call, and is in the history of the next", async () => {
      const before = requestsIn(room).length;
      await ann.say(room, "the cake is ready");
      await ben.say(room, "ask helper to bring it");
      stage.model.on("who baked", (request) => answer(request, "Ann did"));
      await ben.mention(room, helper(), "who baked?");
      await ann.waitForMessage(room, ({ body }) => body === "Ann did");
      const [request, ...more] = requestsIn(room).slice(before);
      expect(more).toEqual([]);
      expect(request && historyOf(request, room)).toEqual(
        expect.arrayContaining(["the cake is ready", "ask helper to bring it"]),
      );
      expect(request && newsOf(request, room)).toEqual(["who baked?"]);
    });
  });

  it.each([
    ["mentioned", (room: string, id: string) => ann.mention(room, id, "sing, please")],
    ["named", (room: string) => ann.say(room, "other: sing, please")],
  ])("of two agents in a room only the one that is %s wakes", async (_how, ask) => {
    const room = await stage.room(ann, [], ["helper", "other"]);
    stage.model.on("sing", (request) => answer(request, "la la la"), { times: 1 });
    await ask(room, stage.agentId("other"));
    await ann.waitForMessage(room, ({ body }) => body === "la la la");
    // Routed after the question: by now the other agent would have been woken.
    await ann.mention(room, helper(), "what time is it?");
    await ann.waitForMessage(room, ({ body }) => body === "noon");
    expect(requestsIn(room).map(agentOf)).toEqual([stage.agentId("other"), helper()]);
    expect(await saidIn(room, stage.agentId("other"))).toEqual(["la la la"]);
    expect(await saidIn(room)).toEqual(["noon"]);
  });

  it("a message to another agent does not wake the agent in whose thread it stands", async () => {
    const room = await stage.room(ann, [], ["helper", "other"]);
    stage.model.on("your opinion", "I have none, and say nothing.");
    const root = await ann.mention(room, helper(), "what time?");
    await ann.waitForMessage(room, ({ body }) => body === "noon");
    await ann.thread(room, root, "what time, in a thread?", { "m.mentions": { user_ids: [helper()] } });
    await eventually(async () => (await saidIn(room)).length === 2, { what: "the answer in the thread" });
    await ann.thread(room, root, "your opinion?", { "m.mentions": { user_ids: [stage.agentId("other")] } });
    await eventually(() => requestsIn(room).length === 4, { what: "the other agent to be asked, and reminded" });
    await everythingRouted();
    const other = stage.agentId("other");
    expect(requestsIn(room).map(agentOf)).toEqual([helper(), helper(), other, other]);
  });

  it("two rooms of an agent are answered while its model thinks for a third", async () => {
    const thinking = Promise.withResolvers<void>();
    stage.model.on("something deep", (request) => [{ wait: thinking.promise }, answer(request, "42")]);
    const [deep, second, third] = await Promise.all([1, 2, 3].map(() => stage.directRoom(ann)));
    if (!deep || !second || !third) throw new Error("three rooms");
    await ann.say(deep, "something deep");
    await stage.model.request("something deep");
    await Promise.all([ann.say(second, "what time?"), ann.say(third, "what time?")]);
    await Promise.all([second, third].map((room) => ann.waitForMessage(room, ({ body }) => body === "noon")));
    expect(await saidIn(deep)).toEqual([]);
    thinking.resolve();
    await ann.waitForMessage(deep, ({ body }) => body === "42");
  });

  it("what is said while a turn runs stands among the new events of its next step", async () => {
    const thinking = Promise.withResolvers<void>();
    stage.model.on("buy milk", (request) =>
      callsOf(request).length === 0
        ? [{ wait: thinking.promise }, say(request, roomOf(request), "noted")]
        : answer(request, `milk and ${newMessages(request).at(-1)?.body}`),
    );
    const room = await stage.directRoom(ann);
    await ann.say(room, "buy milk");
    await stage.model.request("buy milk");
    await ann.say(room, "eggs");
    await everythingRouted();
    thinking.resolve();
    await ann.waitForMessage(room, ({ body }) => body === "milk and eggs");
    const [first, second] = requestsIn(room);
    expect(requestsIn(room)).toHaveLength(2);
    expect(first && newsOf(first, room)).toEqual(["buy milk"]);
    expect(second && newsOf(second, room)).toEqual(expect.arrayContaining(["buy milk", "eggs"]));
    expect(second && turnOf(second)).toBe(first && turnOf(first));
  });

  it("of more than ten events a turn takes ten, and the next turn the rest, in order", async () => {
    const thinking = Promise.withResolvers<void>();
    stage.model.on("item", async (request) => {
      if (callsOf(request).length > 0) return answer(request, "enough");
      if (newMessages(request)[0]?.body === "item 1") await thinking.promise;
      return say(request, roomOf(request), "counting");
    });
    const room = await stage.directRoom(ann);
    const items = Array.from({ length: 14 }, (_, index) => `item ${index + 1}`);
    for (const item of items) await ann.say(room, item);
    await everythingRouted();
    thinking.resolve();
    const seen = () => {
      const byTurn = new Map<number, readonly string[]>();
      for (const request of requestsIn(room))
        byTurn.set(
          turnOf(request),
          newMessages(request).map(({ body }) => body),
        );
      return [...byTurn.values()];
    };
    await eventually(() => seen().flat().includes("item 14"), { what: "everything to be seen" });
    expect(seen().map(({ length }) => length)).toEqual([10, 4]);
    expect(seen().flat()).toEqual(items);
    await eventually(async () => (await saidIn(room)).filter((body) => body === "enough").length === 2, {
      what: "both turns to end",
    });
  });

  it("leaves nothing unfinished, and sent nothing twice or out of order", () => stage.check());

  /** Waits until a later question in another room is answered: the homeserver pushes in order. */
  async function everythingRouted(): Promise<void> {
    const probe = await stage.directRoom(ben);
    await ben.say(probe, "what time?");
    await ben.waitForMessage(probe, ({ body }) => body === "noon");
  }
});
