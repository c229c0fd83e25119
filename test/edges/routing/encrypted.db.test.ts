import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import type { PendingEvent } from "../../../src/domain/tables/events.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { isServed } from "../../../src/edges/routing/encrypted.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { sensor as messages } from "../../../src/edges/sensors/message.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { addAgent, newRoom, newUser, rightsOf, setMember, settleEvent, storeEvent } from "../../support/rows.ts";

const encryption = "m.megolm.v1.aes-sha2";

onEachDatabase((database) => {
  /** An agent and a person in a room; `says` gives what is said where something is judged. */
  const scene = async (algorithm: string | undefined) => {
    const rights = await rightsOf(database(), { "@*:test": "chat" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const judge = new Judge({
      ...mind,
      events: new Events(database()),
      outbox: new Outbox(database()),
      approvals: new Approvals(mind),
      reactions: { react: async () => false, reply: async () => false } as never,
      sensors: [messages],
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
      commands: {
        isOne: (body) => body.startsWith("!"),
        handle: async () => undefined,
      },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      serverName: "test",
      botUserId: "@clevernet:test" as UserId,
    });
    const [agent, roomId, ann] = [await addAgent(database()), newRoom(), newUser()];
    const state = { type: "m.room.encryption", content: { algorithm: algorithm ?? "" }, sender: ann };
    if (algorithm !== undefined) await settleEvent(database(), { roomId: roomId as RoomId }, { state });
    const says = async (fields: { type: string; content: object; sender: UserId; stateKey?: string }) => {
      const event = await storeEvent(database(), { roomId, ...fields } as never);
      const { outbox = [], wakes = [] } = await judge.judge(
        { ...event, isOvertaken: false } as PendingEvent,
        await mind.rooms.context(roomId),
      );
      const said = outbox.map(({ sender, content }) => [sender, (content as { body?: string }).body]);
      return { said, wakes: wakes.length };
    };
    const join = { type: "m.room.member", content: { membership: "join" }, sender: agent.userId };
    const enter = async () => {
      const told = await says({ ...join, stateKey: agent.userId });
      for (const userId of [agent.userId, ann]) await setMember(database(), roomId, userId, "join");
      return told;
    };
    const text = (body: string) => says({ type: "m.room.message", content: { msgtype: "m.text", body }, sender: ann });
    return { agent, enter, text };
  };

  describe("in a room that is encrypted in an unknown way", () => {
    it("an agent that joins says at once that it cannot read", async () => {
      const { agent, enter } = await scene("m.of.tomorrow");
      const { said } = await enter();
      expect(said).toEqual([[agent.userId, expect.stringContaining("encrypted in a way that I cannot read")]]);
    });

    it.each(["hello?", "!status"])("%j without encryption is answered with the reason why not", async (body) => {
      const { agent, enter, text } = await scene("m.of.tomorrow");
      await enter();
      const { said, wakes } = await text(body);
      expect(said).toEqual([[agent.userId, expect.stringContaining("I do nothing with your message")]]);
      expect(wakes).toBe(0);
    });
  });

  it.each([undefined, "m.megolm.v1.aes-sha2"])(
    "in a room whose encryption is %s an agent says nothing of it, and plain text is heard",
    async (algorithm) => {
      const { enter, text } = await scene(algorithm);
      expect(await enter()).toEqual({ said: [], wakes: 0 });
      expect(await text("hello?")).toEqual({ said: [], wakes: 1 });
    },
  );

  it.each([{}, { algorithm: null }, { algorithm: 5 }, { algorithm: "" }, { algorithm: [] }, { algorithm: encryption }])(
    "whether it is served and whether it can be written in are one, also where its encryption is %j",
    async (content) => {
      const [rooms, roomId, agent] = [new Rooms(database()), newRoom(), await addAgent(database())];
      await setMember(database(), roomId, agent.userId, "join");
      const state = { type: "m.room.encryption", content: content as never, sender: newUser() };
      await settleEvent(database(), { roomId }, { state });
      expect(await rooms.isEncrypted(roomId)).toBe(true);
      expect(isServed(await rooms.context(roomId))).toBe(!(await rooms.isUnwritable(roomId)));
    },
  );

  it("a room is encrypted as soon as the homeserver has said so, routed or not, and stays it", async () => {
    const rooms = new Rooms(database());
    const [roomId, sender] = [newRoom(), newUser()];
    const fields = { roomId, sender, type: "m.room.encryption", stateKey: "" };
    await storeEvent(database(), { ...fields, stateKey: undefined });
    expect(await rooms.isEncrypted(roomId)).toBe(false);
    const begun = await storeEvent(database(), { ...fields, content: { algorithm: "m.megolm.v1.aes-sha2" } });
    expect(await rooms.isEncrypted(roomId)).toBe(true);
    await settle(database(), begun, { state: { type: fields.type, content: {}, sender } });
    await settleEvent(database(), fields, { state: { type: fields.type, content: {}, sender } });
    expect(await rooms.isEncrypted(roomId)).toBe(true);
  });
});
