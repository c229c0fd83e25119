import { describe, expect, it } from "vitest";
import type { MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Events, type PendingEvent } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Intake } from "../../../src/edges/routing/intake.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { MissedEvents } from "../../../src/edges/routing/missed.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { sensor as messages } from "../../../src/edges/sensors/message.ts";
import { Approvals } from "../../../src/engine/operations/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { addAgent, newEventId, newRoom, newUser, rightsOf, setMember, settleEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** A room of an agent and `people`; `take` gives what is said in it for what the homeserver pushes. */
  const scene = async ({ permission = "chat", people = 1, minutes = (): number => 0 } = {}) => {
    const rights = await rightsOf(database(), { "@*:test": permission as "chat" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const events = new Events(database());
    const clock = { ...systemClock, monotonic: () => minutes() * 60_000 };
    const judge = new Judge({
      ...mind,
      events,
      outbox: new Outbox(database()),
      approvals: new Approvals(mind),
      reactions: { react: async () => false, reply: async () => false } as never,
      sensors: [messages],
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), clock),
      commands: { isOne: (body) => body.startsWith("!"), handle: async () => undefined },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      serverName: "test",
    });
    const told: string[] = [];
    const intake = new Intake(
      database(),
      silentLog,
      () => {},
      (text) => told.push(text),
    );
    const [agent, roomId] = [await addAgent(database()), newRoom()];
    const humans = Array.from({ length: people }, newUser);
    for (const userId of [agent.userId, ...humans]) await setMember(database(), roomId, userId, "join");
    const pushed = (content: object, fields: object = {}) => ({
      event_id: newEventId(),
      room_id: roomId,
      sender: humans[0],
      type: "m.room.message",
      content: { msgtype: "m.text", ...content },
      origin_server_ts: 1_700_000_000_000,
      ...fields,
    });
    const judged = async (eventId: string) => {
      const event = await events.find(eventId as never);
      if (!event) return [];
      const pending = { ...event, isOvertaken: false } as PendingEvent;
      const { outbox = [], wakes = [], shownChars } = await judge.judge(pending, await mind.rooms.context(roomId));
      expect([wakes, shownChars]).toEqual([[], undefined]);
      return outbox.map(({ sender, content }) => `${sender}: ${(content as { body?: string }).body}`);
    };
    const take = async (content: object, fields: object = {}) => {
      const event = pushed(content, fields);
      await intake.take([event]);
      return judged(event.event_id);
    };
    return { agent, events, judged, pushed, roomId, take, told };
  };
  const says = (agent: UserId) => [expect.stringContaining(`${agent}: I cannot read your message`)];

  describe("a message that cannot be stored", () => {
    it.each([
      ["a NUL", { body: "a\0b" }],
      ["half a character", { body: "x", formatted_body: "\ud800" }],
      ["more than 64 KB", { body: "ü".repeat(33_000) }],
      ["no text, and a NUL", { body: { "\0": 1 } }],
    ])("is kept aside, and its sender is told: %s", async (_, content) => {
      const { agent, take, told } = await scene();
      expect(await take(content)).toEqual(says(agent.userId));
      expect(told).toHaveLength(1);
    });

    it("is told of once in some minutes", async () => {
      let minute = 0;
      const { agent, take } = await scene({ minutes: () => minute });
      expect(await take({ body: "\0" })).toEqual(says(agent.userId));
      minute = 9;
      expect(await take({ body: "\0" })).toEqual([]);
      minute = 11;
      expect(await take({ body: "\0" })).toEqual(says(agent.userId));
    });

    it("is told of only where the agent would answer", async () => {
      const group = await scene({ people: 2 });
      expect(await group.take({ body: "\0" })).toEqual([]);
      expect(await group.take({ body: `${group.agent.name}: \0` })).toEqual(says(group.agent.userId));
      const stranger = await scene({ permission: "none" });
      expect(await stranger.take({ body: "\0" })).toEqual([]);
      const bots = await scene();
      expect(await bots.take({ body: "\0", msgtype: "m.notice" })).toEqual([]);
      const paused = await scene();
      await database().sql`update agents set paused_at = now() where name = ${paused.agent.name}`;
      expect(await paused.take({ body: "\0" })).toEqual([]);
    });

    it.each([
      ["m.megolm.v1.aes-sha2", 1],
      ["m.of.tomorrow", 0],
    ])("is told of in an encrypted room where agents can write there: %s", async (algorithm, times) => {
      const { agent, roomId, take } = await scene();
      const state = { type: "m.room.encryption", content: { algorithm }, sender: newUser() };
      await settleEvent(database(), { roomId }, { state });
      expect(await take({ body: "\0" })).toEqual(says(agent.userId).slice(0, times));
    });

    it("is told of as well where the sweep finds it", async () => {
      const { agent, events, judged, pushed, roomId } = await scene();
      const event = pushed({ body: "a\0b" });
      const client = {} as MatrixClient;
      await new MissedEvents({ events, client }, { userId: agent.userId, roomId: roomId as RoomId }).store(
        [event],
        true,
      );
      expect(await judged(event.event_id)).toEqual(says(agent.userId));
    });
  });
});
