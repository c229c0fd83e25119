import { describe, expect, it } from "vitest";
import type { EventId } from "../../../src/base/lib/ids.ts";
import { type EventSource, Events } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Latecomers } from "../../../src/edges/routing/late.ts";
import { onEachDatabase } from "../../support/database.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { addAgent, newKey, newRoom, newUser, setMember, storeEvent } from "../../support/rows.ts";

const start = new Date("2026-01-02T12:00:00Z");
const [before, after] = [new Date("2026-01-02T11:00:00Z"), new Date("2026-01-02T13:00:00Z")];

/** Has the agent say something that only the homeserver knows, in answer to what was said up to this event. */
type Say = (key: string, until?: EventId) => Promise<unknown>;

onEachDatabase((database) => {
  /** A room with an agent; `hidden` is what the homeserver has of it beside what was pushed. */
  const scene = async (hidden: (room: { say: Say }) => Promise<unknown>) => {
    const agent = await addAgent(database());
    const roomId = newRoom();
    await setMember(database(), roomId, agent.userId, "join");
    const events = new Events(database());
    const outbox = new Outbox(database());
    const say: Say = (key, until) =>
      storeEvent(
        database(),
        {
          roomId,
          sender: agent.userId,
          content: { "org.clevernet.key": key, "org.clevernet.answers_until": until ?? null },
        },
        "sweep",
      );
    let reads = 0;
    const latecomers = new Latecomers({
      events,
      outbox,
      clock: fixedClock({ start }),
      botUserId: newUser(),
      readMissed: async () => {
        reads++;
        await hidden({ say });
      },
    });
    const room = await new Rooms(database()).context(roomId);
    return {
      ask: (sentAt: Date, source: EventSource = "push", type = "m.room.message") =>
        storeEvent(database(), { roomId, sentAt, type }, source),
      isLate: async (event: Awaited<ReturnType<typeof storeEvent>>) => {
        await latecomers.readRoom(event, room);
        return latecomers.comesTooLate(event, agent, room);
      },
      room,
      drafts: (keys: readonly string[]) =>
        keys.map((key) => ({ key, roomId, sender: agent.userId, kind: "message", content: {} }) as const),
      latecomers,
      reads: () => reads,
    };
  };

  describe("a pushed message from before the start", () => {
    it("is late where it has an answer that we know nothing of", async () => {
      const asked: EventId[] = [];
      const { ask, isLate } = await scene(({ say }) => say(newKey(), asked[0]));
      const event = await ask(before);
      asked.push(event.eventId);
      expect(await isLate(event)).toBe(true);
    });

    it("is late where it is encrypted, too", async () => {
      const asked: EventId[] = [];
      const { ask, isLate } = await scene(({ say }) => say(newKey(), asked[0]));
      const event = await ask(before, "push", "m.room.encrypted");
      asked.push(event.eventId);
      expect(await isLate(event)).toBe(true);
    });

    it("is answered where what the agent said behind it answers something earlier", async () => {
      const asked: EventId[] = [];
      const { ask, isLate } = await scene(({ say }) => say(newKey(), asked[0]));
      asked.push((await ask(before)).eventId);
      expect(await isLate(await ask(before))).toBe(false);
    });

    it("is answered where none does", async () => {
      const { ask, isLate } = await scene(async () => {});
      expect(await isLate(await ask(before))).toBe(false);
    });

    it("makes its room be read once", async () => {
      const { ask, latecomers, reads, room } = await scene(async () => {});
      const answers = [];
      for (const _ of [1, 2, 3]) answers.push(await latecomers.readRoom(await ask(before), room));
      expect(answers).toEqual([true, false, false]);
      expect(reads()).toBe(1);
    });

    it("has no notice follow it that was given before", async () => {
      const [given, open] = [newKey(), newKey()];
      const { ask, drafts, latecomers, room } = await scene(({ say }) => say(given));
      const event = await ask(before);
      await latecomers.readRoom(event, room);
      const effects = await latecomers.unsaid(event, { outbox: drafts([given, open]) });
      expect(effects.outbox?.map(({ key }) => key)).toEqual([open]);
    });
  });

  it("a message that was found before the start, and not routed, is late where it has an answer that we know nothing of", async () => {
    const asked: EventId[] = [];
    const { ask, isLate } = await scene(({ say }) => say(newKey(), asked[0]));
    const event = await ask(before, "sweep");
    asked.push(event.eventId);
    expect(await isLate(event)).toBe(true);
  });

  it("history makes no room be read", async () => {
    const { ask, latecomers, reads, room } = await scene(async () => {});
    expect(await latecomers.readRoom(await ask(before, "history"), room)).toBe(false);
    expect(reads()).toBe(0);
  });

  it("a pushed message from after the start is answered without a look at the homeserver", async () => {
    const { ask, drafts, isLate, latecomers, reads } = await scene(async () => {});
    const asked = await ask(after);
    expect(await isLate(asked)).toBe(false);
    expect((await latecomers.unsaid(asked, { outbox: drafts([newKey()]) })).outbox).toHaveLength(1);
    expect(reads()).toBe(0);
  });
});
