import { describe, expect, it } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { chainBudget, type Effects, settle, type WakeDraft } from "../../../src/domain/tables/effects.ts";
import { Operations } from "../../../src/domain/tables/operations.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import {
  addAgent,
  newEventId,
  newKey,
  newRoom,
  newUser,
  setMember,
  settleEvent,
  storeEvent,
} from "../../support/rows.ts";

onEachDatabase((database) => {
  const someAgent = async () => (await addAgent(database())).name;
  /** Everything that routing an event of the room may change. */
  const stateOf = async (roomId: RoomId) => {
    const { sql } = database();
    const [events, rooms, members, state, wakes, outbox] = await Promise.all([
      sql`select event_id, number, shown, routed_at, received_at from events where room_id = ${roomId} order by seq`,
      sql`select * from rooms where room_id = ${roomId}`,
      sql`select * from members where room_id = ${roomId}`,
      sql`select * from room_state where room_id = ${roomId}`,
      sql`select * from wakes where room_id = ${roomId}`,
      sql`select * from outbox where room_id = ${roomId}`,
    ]);
    return { events, rooms, members, state, wakes, outbox };
  };
  const wakeOf = async (roomId: RoomId, fields: Partial<WakeDraft> = {}): Promise<WakeDraft> => ({
    agent: await someAgent(),
    roomId,
    reason: "new event",
    key: newKey(),
    ...fields,
  });
  const allEffects = async (roomId: RoomId): Promise<Effects> => ({
    shownChars: 5,
    member: { userId: newUser(), membership: "join", displayName: "Ann", isDirect: true, kind: "human" },
    state: { type: "m.room.name", content: { name: "Room" }, sender: "@ann:test" as UserId },
    wakes: [await wakeOf(roomId)],
    spendsChain: newEventId(),
    outbox: [{ key: newKey(), roomId, sender: "@agent_x:test" as UserId, kind: "message", content: { body: "hi" } }],
  });

  it("writes all effects of an event with its mark as routed", async () => {
    const roomId = newRoom();
    const event = await storeEvent(database(), { roomId });
    const effects = await allEffects(roomId);
    const { woken } = await settle(database(), event, effects);
    expect(woken).toEqual([{ agent: effects.wakes?.[0]?.agent, roomId }]);
    const state = await stateOf(roomId);
    expect(state.events).toMatchObject([{ event_id: event.eventId, shown: true, routed_at: expect.any(Date) }]);
    expect(state.rooms).toMatchObject([
      { shown_events: 1, shown_chars: 5, last_shown_at: state.events[0]?.received_at },
    ]);
    expect(state.members).toMatchObject([{ user_id: effects.member?.userId, membership: "join", direct: true }]);
    expect(state.state).toMatchObject([{ type: "m.room.name", content: { name: "Room" } }]);
    expect(state.wakes).toMatchObject([{ key: effects.wakes?.[0]?.key, turn_id: null }]);
    expect(state.outbox).toMatchObject([{ key: effects.outbox?.[0]?.key, state: "pending" }]);
  });

  it("tells what it has queued, and what waits before that in the room", async () => {
    const roomId = newRoom();
    const outbox = (await allEffects(roomId)).outbox ?? [];
    const first = await settle(database(), await storeEvent(database(), { roomId }), { outbox });
    expect(first.queued).toEqual({ drafts: outbox, fresh: [outbox[0]?.key], before: [] });
    const later = (await allEffects(roomId)).outbox ?? [];
    const second = await settle(database(), await storeEvent(database(), { roomId }), { outbox: later });
    expect(second.queued).toEqual({ drafts: later, fresh: [later[0]?.key], before: [outbox[0]?.key] });
  });

  it("changes nothing when it is called a second time for the same event", async () => {
    const roomId = newRoom();
    const event = await storeEvent(database(), { roomId });
    await settle(database(), event, await allEffects(roomId));
    const before = await stateOf(roomId);
    expect(await settle(database(), event, await allEffects(roomId))).toMatchObject({
      woken: [],
      queued: { fresh: [] },
    });
    expect(await stateOf(roomId)).toEqual(before);
  });

  it("settles an event once when two processes do it at the same time", async () => {
    const roomId = newRoom();
    const event = await storeEvent(database(), { roomId });
    const effects = await Promise.all([allEffects(roomId), allEffects(roomId), allEffects(roomId)]);
    await Promise.all(effects.map((one) => settle(database(), event, one)));
    const state = await stateOf(roomId);
    expect(state.wakes).toHaveLength(1);
    expect(state.outbox).toHaveLength(1);
    expect(state.rooms).toMatchObject([{ shown_events: 1 }]);
  });

  it("numbers events that are settled at the same time one after the other", async () => {
    const roomId = newRoom();
    const events = await Promise.all(Array.from({ length: 20 }, () => storeEvent(database(), { roomId })));
    await Promise.all(events.map((event) => settle(database(), event, { shownChars: 1 })));
    const { events: settled } = await stateOf(roomId);
    const numbers = settled.map(({ number }) => Number(number)).toSorted((one, other) => one - other);
    expect(numbers).toEqual(events.map((_, index) => index + 1));
  });

  it("does not show an event that has no place in history", async () => {
    const roomId = newRoom();
    await settleEvent(database(), { roomId }, {});
    const state = await stateOf(roomId);
    expect(state.events).toMatchObject([{ shown: false, routed_at: expect.any(Date) }]);
    expect(state.rooms).toEqual([]);
  });

  describe("membership", () => {
    it("is not overwritten by an older event that comes late", async () => {
      const [roomId, user] = [newRoom(), newUser()];
      await setMember(database(), roomId, user, "join", 10);
      await setMember(database(), roomId, user, "leave", 20);
      await setMember(database(), roomId, user, "join", 15);
      expect(await new Rooms(database()).membership(roomId, user)).toBe("leave");
    });

    it("keeps where somebody arrived when their profile changes", async () => {
      const [roomId, user] = [newRoom(), newUser()];
      await setMember(database(), roomId, user, "join", 10);
      await setMember(database(), roomId, user, "join", 20);
      expect((await stateOf(roomId)).members).toMatchObject([{ position: 20, joined_position: 10 }]);
    });

    it("begins anew when somebody comes back", async () => {
      const [roomId, user] = [newRoom(), newUser()];
      await setMember(database(), roomId, user, "join", 10);
      await setMember(database(), roomId, user, "leave", 20);
      await setMember(database(), roomId, user, "join", 30);
      expect((await stateOf(roomId)).members).toMatchObject([{ membership: "join", joined_position: 30 }]);
    });

    it("remembers from the invite that a room is direct", async () => {
      const roomId = newRoom();
      const userId = "@agent_x:test" as UserId;
      const change = { userId, displayName: undefined, kind: "agent" } as const;
      await settleEvent(database(), { roomId }, { member: { ...change, membership: "invite", isDirect: true } });
      await settleEvent(database(), { roomId }, { member: { ...change, membership: "join", isDirect: false } });
      expect((await new Rooms(database()).context(roomId)).agents).toMatchObject([
        { userId, membership: "join", isDirect: true },
      ]);
    });
  });

  it("does not overwrite a room's state with an older event that comes late", async () => {
    const roomId = newRoom();
    const named = (name: string): Effects => ({
      state: { type: "m.room.name", content: { name }, sender: "@ann:test" as UserId },
    });
    await settleEvent(database(), { roomId, position: 20 }, named("new"));
    await settleEvent(database(), { roomId, position: 10 }, named("old"));
    expect((await new Rooms(database()).context(roomId)).state["m.room.name"]).toEqual({ name: "new" });
  });

  it("stores the same wake once, whichever event brings it", async () => {
    const roomId = newRoom();
    const wake = await wakeOf(roomId);
    await settleEvent(database(), { roomId }, { wakes: [wake] });
    const again = await storeEvent(database(), { roomId });
    expect((await settle(database(), again, { wakes: [wake] })).woken).toEqual([]);
    expect((await stateOf(roomId)).wakes).toHaveLength(1);
  });

  describe("the budget of a chain", () => {
    /** An agent's message that would wake so many others; how many it has woken. */
    const speak = async (chain: string, wakes: number): Promise<number> => {
      const roomId = newRoom();
      const drafts = await Promise.all(Array.from({ length: wakes }, () => wakeOf(roomId, { chain })));
      const event = await storeEvent(database(), { roomId });
      return (await settle(database(), event, { wakes: drafts, spendsChain: chain })).woken.length;
    };

    it("is spent by one wake after the other, and then no agent wakes", async () => {
      const chain = newEventId();
      const woken: number[] = [];
      for (let i = 0; i < chainBudget + 2; i++) woken.push(await speak(chain, 1));
      expect(woken).toEqual([1, 1, 1, 1, 1, 1, 0, 0]);
    });

    it.each([
      { wakes: [7], woken: [6] },
      { wakes: [4, 4, 1], woken: [4, 2, 0] },
      { wakes: [5, 1, 1], woken: [5, 1, 0] },
      { wakes: [100, 100], woken: [6, 0] },
    ])("is spent exactly where messages would wake $wakes agents: $woken do", async ({ wakes, woken }) => {
      const chain = newEventId();
      const seen: number[] = [];
      for (const count of wakes) seen.push(await speak(chain, count));
      expect(seen).toEqual(woken);
    });

    it("is spent exactly by rooms that are routed at the same time", async () => {
      const chain = newEventId();
      const woken = await Promise.all(Array.from({ length: 8 }, () => speak(chain, 2)));
      expect(woken.reduce((sum, count) => sum + count, 0)).toBe(6);
    });

    it("is not touched by an event that is routed twice", async () => {
      const [chain, roomId] = [newEventId(), newRoom()];
      const event = await storeEvent(database(), { roomId });
      const effects = { wakes: [await wakeOf(roomId, { chain })], spendsChain: chain };
      for (let i = 0; i < 10; i++) await settle(database(), event, effects);
      expect(await speak(chain, 10)).toBe(5);
    });

    it("is no concern of a human's message", async () => {
      const roomId = newRoom();
      const wakes = await Promise.all(Array.from({ length: 8 }, () => wakeOf(roomId, { chain: newEventId() })));
      const event = await storeEvent(database(), { roomId });
      expect((await settle(database(), event, { wakes })).woken).toHaveLength(8);
    });
  });

  it("an agent's message goes back to whoever made the schedule that began its turn", async () => {
    const [roomId, ann, key, sent] = [newRoom(), newUser(), newKey(), newKey()];
    const { name, userId } = await addAgent(database());
    const draft = await wakeOf(roomId, { agent: name, reason: "schedule", key, chain: key, requester: ann });
    await settleEvent(database(), { roomId }, { wakes: [draft] });
    const turns = new Turns(database(), "process");
    const turn = await turns.claim({ agent: name, roomId }, 4);
    if (typeof turn === "string") throw new Error(turn);
    const outbox = [{ key: sent, roomId, sender: userId, kind: "message" as const, content: { body: "hi" } }];
    await turns.commit(turn, { n: 0, name: "call SendMessage", result: {}, outbox });
    expect(await new Outbox(database()).originOf(sent, userId)).toEqual({ chain: key, requester: ann });
  });

  describe("an echo", () => {
    const pending = async (sender = "@agent_x:test" as UserId) => {
      const [roomId, key] = [newRoom(), newKey()];
      await new Outbox(database()).add([{ key, roomId, sender, kind: "message", content: { body: "hi" } }]);
      return { roomId, key, sender };
    };
    const rowOf = async (key: string) => {
      const [row] = await database().sql`select state, event_id from outbox where key = ${key}`;
      return row;
    };

    it("marks the row as sent, with its event", async () => {
      const { roomId, key, sender } = await pending();
      const { eventId } = await settleEvent(database(), { roomId, sender }, { echoOf: key });
      expect(await rowOf(key)).toEqual({ state: "sent", event_id: eventId });
      expect(await new Outbox(database()).take(roomId, 10)).toEqual([]);
    });

    it("from somebody else marks nothing", async () => {
      const { roomId, key } = await pending();
      await settleEvent(database(), { roomId, sender: newUser() }, { echoOf: key });
      expect(await rowOf(key)).toEqual({ state: "pending", event_id: null });
    });

    it("of a row that was sent already does not change its event", async () => {
      const { roomId, key, sender } = await pending();
      await new Outbox(database()).sent([{ key, eventId: "$first" as EventId }]);
      await settleEvent(database(), { roomId, sender }, { echoOf: key });
      expect(await rowOf(key)).toEqual({ state: "sent", event_id: "$first" });
    });
  });

  describe("an event of ours that no row has sent", () => {
    const nextNumber = async () =>
      (await new Operations(database()).reserve({ agent: await someAgent(), roomId: newRoom() })).id;
    const echo = async (content: Record<string, unknown> = {}, sentAt = new Date(Date.now() + 3_600_000)) => {
      const key = newKey();
      const fields = { roomId: newRoom(), sentAt, content: { ...content, "org.clevernet.key": key } };
      return settleEvent(database(), fields as never, { shownChars: 1, echoOf: key });
    };

    it("tells of a restore: operations are numbered from another thousand on, once", async () => {
      const before = await nextNumber();
      const event = await echo();
      const after = await nextNumber();
      expect(after).toBeGreaterThan(before + 1_000);
      expect(after % 1_000).toBe(1);
      await settle(database(), event, { echoOf: String(event.content["org.clevernet.key"]) });
      await echo({}, new Date("2020-01-01"));
      expect(await nextNumber()).toBe(after + 1);
    });

    it("and is a card, has a number that no operation gets again", async () => {
      await echo();
      const number = (await nextNumber()) + 5_000;
      await echo({ "org.clevernet.operation": number }, new Date("2020-01-01"));
      expect(await nextNumber()).toBeGreaterThan(number);
      await echo({ "org.clevernet.operation": number - 1 }, new Date("2020-01-01"));
      expect(await nextNumber()).toBeLessThan(number + 3_000);
    });

    it("is none where its row is there", async () => {
      const before = await nextNumber();
      const roomId = newRoom();
      const key = newKey();
      const sender = "@agent_x:test" as UserId;
      await new Outbox(database()).add([{ key, roomId, sender, kind: "message", content: {} }]);
      const sentAt = new Date(Date.now() + 7_200_000);
      await settleEvent(database(), { roomId, sender, sentAt }, { shownChars: 1, echoOf: key });
      expect(await nextNumber()).toBe(before + 1);
    });
  });
});
