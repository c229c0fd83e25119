import { describe, expect, it } from "vitest";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import type { Agent } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events, type IncomingEvent } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { pendingIn } from "../../../src/domain/tables/pending.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Reactions } from "../../../src/edges/routing/reactions.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { askPeople } from "../../../src/engine/operations/asking.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import {
  addAgent,
  call,
  incoming,
  newEventId,
  newKey,
  newRoom,
  newUser,
  rightsOf,
  setMember,
  wake,
} from "../../support/rows.ts";

onEachDatabase((database) => {
  const [ann, ben] = [newUser(), newUser()];
  const events = () => new Events(database());

  const scene = async () => {
    // Agents and the bot decide nothing, whatever their rights.
    const all = { "@agent_*:test": "admin", "@clevernet:test": "admin" } as const;
    const rights = await rightsOf(database(), { [ann]: "operate", [ben]: "chat", ...all });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const outbox = new Outbox(database());
    const approvals = new Approvals(mind);
    const runner = new TurnRunner(mind, nobodyElse, () => {});
    const judge = new Judge({
      ...mind,
      events: events(),
      outbox,
      approvals,
      reactions: new Reactions({ ...mind, events: events(), approvals, serverName: "test", runner }),
      // Everything that may wake an agent does.
      sensors: [{ name: "all", description: "", notice: async () => ({ reason: "new event" }) }],
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
      commands: { isOne: () => false, handle: async () => undefined },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      serverName: "test",
      log: silentLog,
    });
    const route = async (...given: readonly IncomingEvent[]) => {
      for (const event of given) await events().store([event], "push");
      for (const room of new Set(given.map(({ roomId }) => roomId))) {
        for (const one of await pendingIn(database(), room))
          await settle(database(), one, await judge.judge(one, await mind.rooms.context(room)));
      }
    };

    const agent: Agent = {
      ...(await addAgent(database())),
      settings: parseAgentSettings({}, "test"),
      displayName: "Helper",
    };
    const roomId = newRoom();
    const other = await addAgent(database());
    for (const member of [ann, ben, agent.userId, other.userId]) await setMember(database(), roomId, member, "join");
    const request = await wake(database(), { agent: agent.name, roomId }, { requester: ann });
    const turn = await mind.turns.claim({ agent: agent.name, roomId }, 4);
    if (typeof turn === "string") throw new Error(turn);
    const asked = call({ requesters: [ben], n: 0 });
    const asking = await askPeople(
      mind,
      asked,
      { agent, roomId, thread: undefined, taint: [] },
      { reason: "it would" },
    );
    if ("refusal" in asking) throw new Error(asking.refusal);
    const operation = { ...asked, ...asking.question, state: "asked" as const };
    await mind.turns.commit(turn, {
      n: 0,
      name: "x",
      result: {},
      outbox: asking.outbox,
      operations: [operation],
      asks: true,
    });
    // The card is an event of the room.
    const card = newEventId();
    const [row] = await outbox.take(roomId, 1);
    await outbox.sent([{ key: row?.key ?? "", eventId: card }]);
    await route(incoming({ roomId, sender: agent.userId, eventId: card, content: (row?.content ?? {}) as never }));
    const found = async () => {
      const { state, decision, decidedBy, decidedBecause } = (await mind.operations.find(asking.question.id)) ?? {};
      return { state, decision, decidedBy, decidedBecause };
    };
    const wakes = async (eventId: EventId) =>
      (await database().sql`select agent from wakes where event_id = ${eventId} order by id`).map((row) => row.agent);
    /** Text of the card after its last edit. */
    const outcome = async () => {
      const rows = await database().sql<{ body: string }[]>`
        select content->>'body' as body from outbox where about = ${row?.key ?? ""} and kind = 'message' order by id desc`;
      return rows[0]?.body;
    };
    const turnState = async () => (await database().sql`select state from turns where agent = ${agent.name}`)[0]?.state;
    return { agent, card, found, other, outcome, request, roomId, route, turn, turnState, wakes };
  };
  const reaction = (roomId: RoomId, sender: UserId, target: EventId, key: string) =>
    incoming({
      roomId,
      sender,
      type: "m.reaction",
      content: { "m.relates_to": { rel_type: "m.annotation", event_id: target, key } },
    });
  const reply = (roomId: RoomId, sender: UserId, target: EventId, more = {}) =>
    incoming({
      roomId,
      sender,
      content: {
        msgtype: "m.text",
        body: "too early",
        "m.relates_to": { "m.in_reply_to": { event_id: target } },
        ...more,
      },
    });
  const undecided = { state: "asked", decision: null, decidedBy: null, decidedBecause: null };

  describe("what was asked for by a message", () => {
    const edit = (roomId: RoomId, sender: UserId, target: EventId) =>
      incoming({
        roomId,
        sender,
        replaces: target,
        content: {
          msgtype: "m.text",
          body: "* never mind",
          "m.new_content": { msgtype: "m.text", body: "never mind" },
          "m.relates_to": { rel_type: "m.replace", event_id: target },
        },
      });
    const redaction = (roomId: RoomId, sender: UserId, target: EventId) =>
      incoming({ roomId, sender, type: "m.room.redaction", redacts: target, content: { redacts: target } });

    it.each([
      ["edited", edit, "was edited"],
      ["taken back", redaction, "was taken back"],
    ])("is withdrawn when that is %s, the card says so, and the turn goes on", async (_how, change, why) => {
      const { found, outcome, request, roomId, route, turnState } = await scene();
      await route(change(roomId, request.sender, request.eventId));
      expect(await found()).toMatchObject({ state: "refused", decision: null, decidedBy: null });
      expect((await found()).decidedBecause).toContain(why);
      expect(await outcome()).toContain("Withdrawn");
      expect(await turnState()).toBe("ready");
    });

    it("is withdrawn when its edit is taken back: it says something else again", async () => {
      const { found, outcome, request, roomId, route } = await scene();
      const first = edit(roomId, request.sender, request.eventId);
      await database().sql`update operations set state = 'done' where state = 'asked'`;
      await route(first);
      await database().sql`update operations set state = 'asked' where id = (select max(id) from operations)`;
      expect((await found()).state).toBe("asked");
      await route(redaction(roomId, request.sender, first.eventId));
      expect((await found()).state).toBe("refused");
      expect(await outcome()).toContain("Withdrawn");
    });

    it("is withdrawn where another agent was asked for it in turn", async () => {
      const { found, request, roomId, route, turn } = await scene();
      const root = incoming({ roomId, sender: ann });
      await route(root);
      await database().sql`update wakes set chain = ${root.eventId} where turn_id = ${turn.id}`;
      await route(redaction(roomId, ann, root.eventId));
      expect((await found()).state).toBe("refused");
      expect(request.eventId).not.toBe(root.eventId);
    });

    it("stays where somebody else edits it, or another message is edited", async () => {
      const { found, request, roomId, route } = await scene();
      await route(edit(roomId, ben, request.eventId));
      await route(redaction(roomId, ben, request.eventId));
      const other = incoming({ roomId, sender: ann });
      await route(other, edit(roomId, ann, other.eventId));
      expect(await found()).toEqual(undecided);
    });

    it("stays decided where people had decided it before", async () => {
      const { card, found, request, roomId, route } = await scene();
      await route(reaction(roomId, ann, card, "✅"));
      await route(edit(roomId, request.sender, request.eventId));
      expect(await found()).toMatchObject({ state: "asked", decision: "approved", decidedBy: ann });
    });

    it("cannot be approved any more, and whoever tries is told why", async () => {
      const { card, found, request, roomId, route } = await scene();
      await route(edit(roomId, request.sender, request.eventId), reaction(roomId, ann, card, "✅"));
      expect(await found()).toMatchObject({ state: "refused", decision: null });
    });
  });

  describe("a card is decided", () => {
    it.each<[string, string, object]>([
      ["✅", "✅", { decision: "approved" }],
      ["✅ as an emoji", "✅\uFE0F", { decision: "approved" }],
      ["❌", "❌", { decision: "denied", state: "refused" }],
    ])("by %s of somebody who may", async (_, key, outcome) => {
      const { card, found, roomId, route } = await scene();
      await route(reaction(roomId, ann, card, key));
      expect(await found()).toMatchObject({ ...outcome, decidedBy: ann });
    });

    it("with a no, and its text, by an answer of somebody who may", async () => {
      const { card, found, roomId, route } = await scene();
      await route(reply(roomId, ann, card));
      expect(await found()).toMatchObject({ decision: "denied", decidedBy: ann, decidedBecause: "too early" });
    });

    it("once: what comes later changes nothing", async () => {
      const { card, found, roomId, route } = await scene();
      await route(reaction(roomId, ann, card, "❌"), reaction(roomId, ann, card, "✅"), reply(roomId, ann, card));
      expect(await found()).toMatchObject({ decision: "denied", decidedBy: ann, decidedBecause: null });
    });
  });

  describe("a card is not decided by", () => {
    type Scene = Awaited<ReturnType<typeof scene>>;
    it.each<[string, (of: Scene) => readonly IncomingEvent[]]>([
      ["somebody who may only talk", ({ card, roomId }) => [reaction(roomId, ben, card, "✅")]],
      ["an answer of somebody who may only talk", ({ card, roomId }) => [reply(roomId, ben, card)]],
      ["the agent itself", ({ agent, card, roomId }) => [reaction(roomId, agent.userId, card, "✅")]],
      ["another agent", ({ card, roomId }) => [reaction(roomId, "@agent_other:test" as UserId, card, "✅")]],
      ["the bot", ({ card, roomId }) => [reaction(roomId, "@clevernet:test" as UserId, card, "✅")]],
      ["another sign", ({ card, roomId }) => ["👍", "✅✅", "yes", "✔️"].map((key) => reaction(roomId, ann, card, key))],
      ["a sign on another event", ({ roomId }) => [reaction(roomId, ann, newEventId(), "✅")]],
      ["a sign in another room", ({ card }) => [reaction(newRoom(), ann, card, "✅")]],
      ["an answer in another room", ({ card }) => [reply(newRoom(), ann, card)]],
      [
        "a message that is its edit",
        ({ card, roomId }) => {
          const relation = { rel_type: "m.replace", event_id: card };
          const content = { msgtype: "m.text", body: "✅", "m.new_content": { msgtype: "m.text", body: "✅" } };
          return [incoming({ roomId, sender: ann, content: { ...content, "m.relates_to": relation }, replaces: card })];
        },
      ],
      ["a notice", ({ card, roomId }) => [reply(roomId, ann, card, { msgtype: "m.notice" })]],
      [
        "what stands in a thread after it",
        ({ card, roomId }) => {
          const place = { rel_type: "m.thread", event_id: newEventId(), is_falling_back: true };
          return [reply(roomId, ann, card, { "m.relates_to": { ...place, "m.in_reply_to": { event_id: card } } })];
        },
      ],
      [
        "a sign that was taken back before it came here",
        ({ card, roomId }) => {
          const sign = reaction(roomId, ann, card, "✅");
          const redaction = { type: "m.room.redaction", content: {}, redacts: sign.eventId };
          return [incoming({ roomId, sender: ann, ...redaction }), sign];
        },
      ],
    ])("%s", async (_, made) => {
      const given = await scene();
      await given.route(...made(given));
      expect(await given.found()).toEqual(undecided);
    });
  });

  describe("other agents are not woken", () => {
    it("by a card, as they are by what else an agent says", async () => {
      const { agent, card, other, roomId, route, wakes } = await scene();
      expect(await wakes(card)).toEqual([]);
      const key = newKey();
      const content = { msgtype: "m.text", body: "hello", "org.clevernet.key": key };
      await database().sql`insert into outbox (key, room_id, sender, kind, content, turn_id)
        select ${key}, ${roomId}, ${agent.userId}, 'message', '{}', max(id) from turns where agent = ${agent.name}`;
      const said = incoming({ roomId, sender: agent.userId, content });
      await route(said);
      expect(await wakes(said.eventId)).toEqual([other.name]);
    });

    it("by an answer that denies, as they are by one that does not", async () => {
      const { agent, card, other, roomId, route, wakes } = await scene();
      const [talk, denial] = [reply(roomId, ben, card), reply(roomId, ann, card)];
      await route(talk, denial);
      expect([await wakes(talk.eventId), await wakes(denial.eventId)]).toEqual([[agent.name, other.name], []]);
    });
  });

  describe("🛑 on what an agent has said", () => {
    it("by whoever may operate ends what waits", async () => {
      const { card, found, roomId, route } = await scene();
      await route(reaction(roomId, ann, card, "🛑"));
      expect(await found()).toMatchObject({ state: "interrupted", decision: null });
    });

    it("by a bystander, or on what a person has said, ends nothing", async () => {
      const { card, found, roomId, route } = await scene();
      const said = incoming({ roomId, sender: ann });
      await route(said, reaction(roomId, ann, said.eventId, "🛑"), reaction(roomId, ben, card, "🛑"));
      expect(await found()).toEqual(undecided);
    });
  });
});
