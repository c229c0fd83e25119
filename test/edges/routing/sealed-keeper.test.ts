import { expect, it, vi } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import type { SealedEvent } from "../../../src/domain/tables/sealed-events.ts";
import { SealedKeeper } from "../../../src/edges/routing/sealed-keeper.ts";

it("an event that is put aside while its key comes is tried once more", async () => {
  const event: SealedEvent = {
    eventId: "$late" as EventId,
    roomId: "!room:test" as RoomId,
    sessionId: "session",
    userId: "@agent_helper:test" as UserId,
    reason: "missing",
    ageSeconds: 0,
  };
  let waiting: SealedEvent[] = [];
  const released: (readonly unknown[])[] = [];
  const looks = vi.fn(async () => waiting);
  const keeper = new SealedKeeper({
    machines: { run: async () => {} },
    sealed: {
      forgetOld: async () => {},
      findWaiting: looks,
      release: async (events: readonly unknown[] = []) => {
        released.push(events);
        return [];
      },
    },
    leases: { holds: () => true, onGain() {} },
    clock: systemClock,
    log: silentLog,
    onReleased() {},
  } as never);
  const { roomId, sessionId } = event;
  keeper.keysCame([{ roomId, sessionId }]);
  waiting = [event];
  keeper.start();
  await expect.poll(() => released).toContainEqual([event]);
  const before = looks.mock.calls.length;
  keeper.nudge();
  await expect.poll(() => looks.mock.calls.length).toBeGreaterThan(before);
  await keeper.stop();
  expect(released.filter(([first]) => first === event)).toHaveLength(1);
});
