import { beforeEach, describe, expect, it } from "vitest";
import { draftContent, draftEdit } from "../../../src/adapters/matrix/draft.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events, type IncomingEvent } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { pendingIn } from "../../../src/domain/tables/pending.ts";
import { Renders } from "../../../src/domain/tables/renders.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { onEachDatabase } from "../../support/database.ts";
import {
  addAgent,
  incoming,
  newEventId,
  newKey,
  newRoom,
  newUser,
  rightsOf,
  setMember,
  settleEvent,
  storeEvent,
  wake,
} from "../../support/rows.ts";

onEachDatabase((database) => {
  const events = () => new Events(database());
  let roomId: RoomId;
  beforeEach(() => {
    roomId = newRoom();
  });
  const pending = async (limit?: number) => (await pendingIn(database(), roomId, limit)).map(({ eventId }) => eventId);

  describe("storing", () => {
    it("keeps the order in which events are given, over many calls and within each", async () => {
      const given = Array.from({ length: 30 }, () => incoming({ roomId }));
      for (const part of [given.slice(0, 1), given.slice(1, 25), given.slice(25)]) await events().store(part, "push");
      expect(await pending()).toEqual(given.map(({ eventId }) => eventId));
    });

    it("stores an event once, whoever brings it and however often", async () => {
      const event = incoming({ roomId });
      expect(await events().store([event, event], "push")).toEqual([roomId]);
      expect(await events().store([{ ...event, content: { body: "other" } }], "sweep")).toEqual([]);
      expect(await pending()).toEqual([event.eventId]);
      expect(await events().find(event.eventId)).toMatchObject({ content: event.content, source: "push" });
    });

    it("stores an event once when it comes twice at the same time", async () => {
      const event = incoming({ roomId });
      const rooms = await Promise.all(Array.from({ length: 8 }, () => events().store([event], "push")));
      expect(rooms.flat()).toEqual([roomId]);
      expect(await pending()).toEqual([event.eventId]);
    });

    it("names each room in which something is new once", async () => {
      const [known, other] = [incoming({ roomId: newRoom() }), newRoom()];
      await events().store([known], "push");
      const given = [incoming({ roomId }), known, incoming({ roomId: other }), incoming({ roomId })];
      expect((await events().store(given, "push")).sort()).toEqual([roomId, other].sort());
    });

    it("gives back what it was given", async () => {
      const event: IncomingEvent = {
        ...incoming({ roomId }),
        stateKey: "",
        content: { body: "𝄞 \r\n \"'\\", nested: { list: [1, 2.5, null, true] } },
        replaces: newEventId(),
        redacts: newEventId(),
      };
      await events().store([event], "sweep");
      expect(await events().find(event.eventId)).toMatchObject({ ...event, position: expect.any(Number) });
    });

    it("gives at most as many as are asked for, the oldest, and none that is routed", async () => {
      const given = Array.from({ length: 3 }, () => incoming({ roomId }));
      await events().store(given, "push");
      const [first] = await pendingIn(database(), roomId, 1);
      if (first) await settle(database(), first, {});
      expect(await pending(1)).toEqual([given[1]?.eventId]);
    });

    it("gives with the first of those that wait what is known of the room", async () => {
      const rooms = new Rooms(database());
      await setMember(database(), roomId, newUser(), "join");
      const agent = await addAgent(database());
      await setMember(database(), roomId, agent.userId, "join");
      await events().store([incoming({ roomId }), incoming({ roomId })], "push");
      const waiting = await pendingIn(database(), roomId);
      expect(waiting.map(({ room }) => room)).toEqual([await rooms.context(roomId), null]);
      expect(waiting[0]?.room).toMatchObject({ humans: 1, agents: [{ userId: agent.userId, membership: "join" }] });
    });

    it("keeps what is no event once, as it came", async () => {
      const misfit = { digest: newKey(), reason: "no sender", raw: Buffer.from([0, 255, 10]) };
      await events().quarantine([misfit, misfit]);
      const rows = await database().sql`select reason, raw from quarantine where digest = ${misfit.digest}`;
      expect([...rows]).toEqual([{ reason: "no sender", raw: misfit.raw }]);
    });
  });

  it("a late event takes its place between those that are known", async () => {
    const [before, after] = [await storeEvent(database(), { roomId }), await storeEvent(database(), { roomId })];
    const place = (await events().positionBefore(roomId, after.position)) + 0.5;
    expect(place).toBe(before.position + 0.5);
    const late = await storeEvent(database(), { roomId, position: place }, "sweep");
    const positions = await events().positions([after.eventId, before.eventId, late.eventId, newEventId()]);
    expect([...positions].sort(([, a], [, b]) => a - b).map(([id]) => id)).toEqual([
      before.eventId,
      late.eventId,
      after.eventId,
    ]);
  });

  it("knows of a late event whether something newer of its sender was taken up", async () => {
    const agent = await addAgent(database());
    const [sender, conversation] = [newUser(), { agent: agent.name, roomId }];
    const late = await storeEvent(database(), { roomId, sender, position: 0.5 }, "sweep");
    await wake(database(), conversation, { requester: newUser() });
    const newer = await wake(database(), conversation, { requester: sender });
    expect(await events().hasAnsweredLater(agent, late)).toBe(false);
    await new Turns(database(), "test").claim(conversation, 1);
    expect(await events().hasAnsweredLater(agent, late)).toBe(true);
    expect(await events().hasAnsweredLater(agent, newer)).toBe(false);
  });

  it("counts as answered what a message of the agent answers that no row of the outbox has sent", async () => {
    const agent = await addAgent(database());
    const earlier = await storeEvent(database(), { roomId, position: 0.25 }, "sweep");
    const asked = await storeEvent(database(), { roomId, position: 0.5 }, "sweep");
    const said = (key: string, until: EventId | undefined, sender = agent.userId) =>
      storeEvent(
        database(),
        { roomId, sender, content: { "org.clevernet.key": key, "org.clevernet.answers_until": until ?? null } },
        "sweep",
      );
    const known = newKey();
    const row = { key: known, roomId, sender: agent.userId, kind: "message", content: {} } as const;
    await new Outbox(database()).add([row]);
    await said(known, asked.eventId);
    await said(newKey(), undefined);
    await said(newKey(), earlier.eventId);
    await said(newKey(), asked.eventId, newUser());
    expect(await events().hasAnsweredLater(agent, asked)).toBe(false);
    expect(await events().hasAnsweredLater(agent, earlier)).toBe(true);
    const answer = await said(newKey(), asked.eventId);
    expect(await events().hasAnsweredLater(agent, asked)).toBe(true);
    expect(await events().hasAnsweredLater(agent, answer)).toBe(false);
  });

  describe("a redaction", () => {
    it("empties the event, its edits, and the renders in which it stood, and no other", async () => {
      const [event, other] = [await settleEvent(database(), { roomId }), await settleEvent(database(), { roomId })];
      const edit = await settleEvent(database(), { roomId, replaces: event.eventId });
      const renders = new Renders(database());
      const keep = (turnId: number, eventIds: EventId[]) =>
        renders.keep({ turnId, n: 0, system: "s", prompt: "p", eventIds, tools: "", toolset: "", subAgent: null });
      const turnId = other.seq + 1_000_000;
      await keep(turnId, [other.eventId, event.eventId]);
      await keep(turnId + 1, [other.eventId]);
      await events().redact(event.eventId);
      for (const { eventId } of [event, edit]) expect((await events().find(eventId))?.content).toEqual({});
      expect((await events().find(other.eventId))?.content).toEqual(other.content);
      expect(await renders.of(turnId, [])).toMatchObject([{ system: "", prompt: "" }]);
      expect(await renders.of(turnId + 1, [])).toMatchObject([{ system: "s", prompt: "p" }]);
    });

    it("of an edit empties the renders in which the message stood", async () => {
      const event = await settleEvent(database(), { roomId });
      const edit = await settleEvent(database(), { roomId, replaces: event.eventId });
      const foreign = await settleEvent(database(), { roomId, replaces: event.eventId, sender: newUser() });
      const turnId = event.seq + 3_000_000;
      const shown = {
        n: 0,
        system: "s",
        prompt: "p",
        tools: "",
        toolset: "",
        subAgent: null,
        eventIds: [event.eventId],
      };
      await new Renders(database()).keep({ ...shown, turnId });
      await events().redact(foreign.eventId);
      expect(await new Renders(database()).of(turnId, [])).toMatchObject([{ system: "s", prompt: "p" }]);
      await events().redact(edit.eventId);
      expect(await new Renders(database()).of(turnId, [])).toMatchObject([{ system: "", prompt: "" }]);
    });

    it("empties a render that is kept only after it", async () => {
      const event = await settleEvent(database(), { roomId });
      await events().redact(event.eventId);
      const turnId = event.seq + 2_000_000;
      await new Renders(database()).keep({
        turnId,
        n: 0,
        system: "s",
        prompt: "p",
        eventIds: [event.eventId],
        tools: "",
        toolset: "",
        subAgent: null,
      });
      expect(await new Renders(database()).of(turnId, [])).toMatchObject([{ system: "", prompt: "" }]);
    });

    /** An agent says something in a turn of its own. */
    const speaker = async () => {
      const agent = await addAgent(database());
      const conversation = { agent: agent.name, roomId };
      const turns = new Turns(database(), "test");
      const speak = async (key: string, kind: "message" | "draft" = "message") => {
        await wake(database(), conversation);
        const turn = await turns.claim(conversation, 1);
        if (typeof turn === "string") throw new Error(turn);
        const draft = { key, roomId, sender: agent.userId, kind, content: { body: key } };
        await turns.commit(turn, { n: 0, name: "x", result: {}, ends: true, outbox: [draft], ephemeris: [key] });
        return settleEvent(database(), { roomId, sender: agent.userId }, { shownChars: 1, echoOf: key });
      };
      return { agent, speak };
    };

    it("of what an agent said empties the row that sent it, and the ephemeris of that turn alone", async () => {
      const { agent, speak } = await speaker();
      const keys = [newKey(), newKey()];
      const [first] = [await speak(keys[0] ?? ""), await speak(keys[1] ?? "")];
      await events().redact(first.eventId);
      const rows = await database().sql`select content from outbox where room_id = ${roomId} order by id`;
      expect([...rows]).toEqual([{ content: {} }, { content: { body: keys[1] } }]);
      const left = await database().sql`select entry from ephemeris where user_id = ${agent.userId}`;
      expect([...left]).toEqual([{ entry: keys[1] }]);
    });

    it("of a draft empties the row that sent it, and leaves the ephemeris", async () => {
      const { agent, speak } = await speaker();
      const key = newKey();
      await events().redact((await speak(key, "draft")).eventId);
      const rows = await database().sql`select content from outbox where key = ${key}`;
      expect([...rows]).toEqual([{ content: {} }]);
      const left = await database().sql`select entry from ephemeris where user_id = ${agent.userId}`;
      expect([...left]).toEqual([{ entry: key }]);
    });
  });

  describe("judged in any order", () => {
    const [ann, mallory] = [newUser(), newUser()];
    const bot = "@clevernet:test" as UserId;
    const invited: EventId[] = [];
    /** Stores the events in this order and routes them in it. */
    const route = async (...given: readonly IncomingEvent[]) => {
      for (const event of given) await routeAtOnce(event);
    };
    /** Routes events that are all stored before the first is routed. */
    const routeAtOnce = async (...given: readonly IncomingEvent[]) => {
      const rooms = new Rooms(database());
      const judge = new Judge({
        events: events(),
        rooms,
        outbox: new Outbox(database()),
        directory: new AgentDirectory(database(), systemClock, silentLog),
        rights: await rightsOf(database(), {}),
        sensors: [],
        throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
        clock: systemClock,
        readMissed: async () => {},
        commands: { isOne: () => false, handle: async () => undefined },
        reactions: { react: async () => {}, reply: async () => false },
        approvals: { withdraw: async () => {} },
        bot: {
          onInvite: async ({ key }) => {
            invited.push(key as EventId);
            return [];
          },
          onMessage: async () => [],
          onUnknownAgent: async () => [],
          onClosedDoor: async () => [],
        },
        serverName: "test",
        botUserId: bot,
        log: silentLog,
      });
      await events().store(given, "push");
      for (const one of await pendingIn(database(), roomId))
        await settle(database(), one, await judge.judge(one, await rooms.context(roomId)));
    };
    const original = () => incoming({ roomId, sender: ann });
    const editOf = ({ eventId }: IncomingEvent, body: string, sender = ann) => {
      const content = {
        msgtype: "m.text",
        body: `* ${body}`,
        "m.new_content": { msgtype: "m.text", body },
        "m.relates_to": { rel_type: "m.replace", event_id: eventId },
      };
      return incoming({ roomId, sender, content, replaces: eventId });
    };
    const redactionOf = ({ eventId }: IncomingEvent, sender = ann) =>
      incoming({ roomId, sender, type: "m.room.redaction", content: {}, redacts: eventId });
    const bodyOf = async ({ eventId }: IncomingEvent) => (await events().find(eventId))?.content.body;

    it("an edit gives a message its new text, also where it comes before it", async () => {
      for (const isEarly of [false, true]) {
        const message = original();
        const edit = editOf(message, "edited");
        await route(...(isEarly ? [edit, message] : [message, edit]));
        expect(await bodyOf(message)).toBe("edited");
      }
    });

    it("the newest edit counts", async () => {
      const message = original();
      await route(editOf(message, "one"), message, editOf(message, "two"));
      expect(await bodyOf(message)).toBe("two");
    });

    it("an edit that is redacted is taken back, also where its redaction comes before it", async () => {
      const message = original();
      const [one, two, three] = [editOf(message, "one"), editOf(message, "two"), editOf(message, "three")];
      await route(message, one, two, redactionOf(three), three);
      expect(await bodyOf(message)).toBe("two");
      await route(redactionOf(two));
      expect(await bodyOf(message)).toBe("one");
      await route(redactionOf(one));
      expect(await events().find(message.eventId)).toMatchObject({ content: message.content, editedAt: null });
      const rows = await database().sql`select 1 from events where room_id = ${roomId} and events::text like '%two%'`;
      expect([...rows]).toEqual([]);
    });

    it("an edit of an edit changes nothing, also where it comes before", async () => {
      const message = original();
      const edit = editOf(message, "edited");
      const early = editOf(edit, "early");
      await route(early, edit, editOf(edit, "late"), message);
      expect(await bodyOf(message)).toBe("edited");
    });

    it("an edit by somebody else changes nothing, also where it comes before", async () => {
      for (const isEarly of [false, true]) {
        const message = original();
        const edit = editOf(message, "forged", mallory);
        await route(...(isEarly ? [edit, message] : [message, edit]));
        expect(await bodyOf(message)).toBe("hello");
      }
    });

    it("a redaction empties a message, also where it comes before it, and no edit fills it again", async () => {
      for (const isEarly of [false, true]) {
        const message = original();
        const redaction = redactionOf(message);
        await route(...(isEarly ? [redaction, message] : [message, redaction]), editOf(message, "back"));
        expect(await bodyOf(message)).toBeUndefined();
      }
    });

    describe("a draft that is taken back", () => {
      const agent = "@agent_drafter:test" as UserId;
      const drafted = (sender: UserId) => {
        const draft = incoming({ roomId, sender, content: draftContent("Hel", undefined, newKey()) });
        const edit = incoming({ roomId, sender, content: draftEdit(draft.eventId, "Hello") as never });
        return [draft, { ...edit, replaces: draft.eventId }, redactionOf(draft, sender)] as const;
      };
      /** Events that are to be taken back as well. */
      const withdrawn = async () => (await new Outbox(database()).take(roomId, 10)).map(({ content }) => content);
      const only = ({ eventId }: IncomingEvent) => [{ "m.relates_to": { event_id: eventId } }];

      it("takes its edits with it, also one that comes after it", async () => {
        const [draft, edit, redaction] = drafted(agent);
        await route(draft, redaction, edit);
        expect(await withdrawn()).toEqual(only(edit));
      });

      it("takes its edits with it, also one that is stored when it is taken back", async () => {
        const [draft, edit, redaction] = drafted(agent);
        await route(draft);
        await routeAtOnce(redaction, edit);
        expect(await withdrawn()).toEqual(only(edit));
      });

      it("leaves edits alone that were taken back before", async () => {
        const [draft, edit, redaction] = drafted(agent);
        await route(draft, edit, redactionOf(edit, agent), redaction);
        expect(await withdrawn()).toEqual([]);
      });

      it("is what only an agent writes", async () => {
        const [draft, edit, redaction] = drafted(mallory);
        await route(draft, edit, redaction);
        await route(...drafted(mallory).toReversed());
        expect(await withdrawn()).toEqual([]);
      });
    });

    it("an invitation is answered, unless it was taken back before", async () => {
      const member = (membership: string) =>
        incoming({ roomId, sender: ann, type: "m.room.member", stateKey: bot, content: { membership } });
      const [first, second, third] = [member("invite"), member("invite"), member("invite")];
      await route(first);
      await routeAtOnce(member("leave"), second, member("leave"));
      await routeAtOnce(third);
      expect(invited).toEqual([first.eventId, third.eventId]);
    });

    it("a redaction by somebody without the power changes nothing", async () => {
      const message = original();
      await route(message, redactionOf(message, mallory));
      expect(await bodyOf(message)).toBe("hello");
    });

    it("a redaction by somebody with the power empties the message", async () => {
      const message = original();
      const levels = { users: { [mallory]: 50 }, redact: 50 };
      await route(incoming({ roomId, sender: ann, type: "m.room.power_levels", stateKey: "", content: levels }));
      await route(message, redactionOf(message, mallory));
      expect(await bodyOf(message)).toBeUndefined();
    });

    it.each([
      ["11", false, false],
      ["12", true, true],
      ["13", true, true],
      ["org.unknown", false, false],
    ])(
      "in a room of version %s its creator may redact: %s, and so may whom the creator has named: %s",
      async (version, ...may) => {
        const named = newUser();
        const content = { room_version: version, additional_creators: [named, 5, null] };
        await route(incoming({ roomId, sender: mallory, type: "m.room.create", stateKey: "", content }));
        const [one, other] = [original(), original()];
        await route(one, other, redactionOf(one, mallory), redactionOf(other, named));
        expect([await bodyOf(one), await bodyOf(other)].map((body) => body === undefined)).toEqual(may);
      },
    );

    it("a room is said to be encrypted in an unknown way where it is, and not by an event that only looks so", async () => {
      const agent = await addAgent(database());
      await setMember(database(), roomId, agent.userId, "join");
      const content = { algorithm: "org.example.unknown" };
      const encryption = (stateKey: string | undefined) =>
        incoming({ roomId, type: "m.room.encryption", stateKey, content });
      const said = async () => (await database().sql`select sender from outbox where room_id = ${roomId}`).length;
      await route(encryption(undefined), encryption("no"));
      expect(await said()).toBe(0);
      await route(encryption(""));
      expect(await said()).toBe(1);
    });

    it("a redaction takes away the names that an event gave, and no newer ones", async () => {
      const state = (type: string, stateKey: string, content: { [field: string]: string }) =>
        incoming({ roomId, sender: ann, type, stateKey, content });
      const join = (displayname: string) => state("m.room.member", ann, { membership: "join", displayname });
      const names = async () => {
        const { state: known } = await new Rooms(database()).context(roomId);
        const [member] = await database().sql`
          select membership, display_name as name from members where room_id = ${roomId} and user_id = ${ann}`;
        return { room: known["m.room.name"], member };
      };
      const [before, now] = [join("before"), join("now")];
      const [oldName, newName] = [state("m.room.name", "", { name: "old" }), state("m.room.name", "", { name: "new" })];
      await route(before, now, oldName, newName, redactionOf(before), redactionOf(oldName));
      expect(await names()).toEqual({ room: { name: "new" }, member: { membership: "join", name: "now" } });
      await route(redactionOf(now), redactionOf(newName));
      expect(await names()).toEqual({ room: {}, member: { membership: "join", name: null } });
    });
  });
});
