import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { PendingEvent } from "../../../src/domain/tables/events.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { sensor as messages } from "../../../src/edges/sensors/message.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { addAgent, newRoom, newUser, rightsOf, setMember, settleEvent, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** An agent and a person in a room; `says` gives what is said where something is judged. */
  const scene = async (encrypted = true) => {
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
    const content = { algorithm: "m.megolm.v1.aes-sha2" };
    const state = { type: "m.room.encryption", content, sender: ann };
    if (encrypted) await settleEvent(database(), { roomId: roomId as RoomId }, { state });
    const says = async (fields: { type: string; content: object; sender: UserId; stateKey?: string }) => {
      const event = await storeEvent(database(), { roomId, ...fields } as never);
      const { outbox = [], wakes = [] } = await judge.judge(
        { ...event, overtaken: false } as PendingEvent,
        await mind.rooms.context(roomId),
      );
      expect(wakes).toEqual([]);
      return outbox.map(({ sender, content: said }) => [sender, (said as { body?: string }).body]);
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

  describe("in a room that is encrypted already", () => {
    it("an agent that joins says at once that it cannot read", async () => {
      const { agent, enter } = await scene();
      expect(await enter()).toEqual([[agent.userId, expect.stringContaining("I cannot read encrypted messages yet")]]);
    });

    it("it says nothing of the kind where the room is not", async () => {
      const { enter } = await scene(false);
      expect(await enter()).toEqual([]);
    });

    it.each(["hello?", "!status"])("%j without encryption is answered with the reason why not", async (body) => {
      const { agent, enter, text } = await scene();
      await enter();
      expect(await text(body)).toEqual([[agent.userId, expect.stringContaining("Your message was not encrypted")]]);
    });
  });
});
