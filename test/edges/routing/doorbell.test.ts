import { beforeEach, expect, it, vi } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Doorbell } from "../../../src/edges/routing/doorbell.ts";
import { fixedClock } from "../../support/fixed-clock.ts";

const patienceMs = 8_000;
const echo = [{ type: "org.clevernet.doorbell" }];
const onHeldBack = vi.fn();
const notifier = { tell: vi.fn(), on: vi.fn() };
const sendState = vi.fn(async () => "$rung" as EventId);
let clock: ReturnType<typeof fixedClock>;
let doorbell: Doorbell;

beforeEach(() => {
  vi.clearAllMocks();
  clock = fixedClock({ instantBelow: 0 });
  doorbell = new Doorbell({
    client: {
      botUserId: "@clevernet:example.org" as UserId,
      ownRoom: async () => "!doorbell:example.org" as RoomId,
      sendState,
    },
    sole: { ask: async () => true },
    notifier,
    serverName: "example.org",
    clock,
    log: silentLog,
    onHeldBack,
  });
});

/** Lets so many rounds pass without an echo. */
const wait = async (rounds: number) => {
  for (let round = 0; round < rounds; round++) {
    const { length } = clock.sleeps;
    clock.advance(patienceMs);
    await vi.waitFor(() => expect(clock.sleeps).toHaveLength(length + 1));
  }
};
/** Rings for the first time; resolves when it waits for the echo. */
const ring = async () => {
  const ended = doorbell.ring();
  await vi.waitFor(() => expect(clock.sleeps).toHaveLength(1));
  return { ended };
};

it("is answered when its echo is pushed", async () => {
  const { ended } = await ring();
  doorbell.listen([{ type: "m.room.message" }]);
  expect(onHeldBack).not.toHaveBeenCalled();
  doorbell.listen(echo);
  await ended;
  expect(onHeldBack).toHaveBeenCalledOnce();
});

it("that is stopped counts as unanswered", async () => {
  const { ended } = await ring();
  doorbell.stop();
  await ended;
  expect(onHeldBack).not.toHaveBeenCalled();
});

it("sends another event where the echo is lost, more and more seldom", async () => {
  await ring();
  const sent: number[] = [];
  for (let round = 1; round <= 20; round++) {
    if (sendState.mock.calls.length > sent.length) sent.push(round);
    await wait(1);
  }
  expect(sent).toEqual([1, 2, 4, 8, 16]);
  doorbell.stop();
});

it("sends another event when the homeserver comes back once more", async () => {
  await ring();
  await wait(4);
  expect(sendState).toHaveBeenCalledTimes(3);
  await doorbell.ring();
  await wait(1);
  expect(sendState).toHaveBeenCalledTimes(4);
  doorbell.stop();
});

it("whose event cannot be sent sends it in the next round", async () => {
  sendState.mockRejectedValueOnce(new Error("503"));
  await ring();
  await wait(1);
  expect(sendState).toHaveBeenCalledTimes(2);
  doorbell.stop();
});

it("hears that what comes was held back, and tells the other processes", () => {
  doorbell.listen([{ type: "m.room.message", unsigned: { age: 4_000 } }, { type: "m.room.message" }, "misfit"]);
  expect(onHeldBack).not.toHaveBeenCalled();
  doorbell.listen([{ type: "m.room.message", unsigned: { age: 6_000 } }]);
  expect(onHeldBack).toHaveBeenCalledOnce();
  expect(notifier.tell.mock.calls).toEqual([["doorbell", ["late"]]]);
});

it("hears from another process what came to that one", async () => {
  const [, hear] = notifier.on.mock.calls[0] as [string, (words?: readonly string[]) => void];
  const { ended } = await ring();
  hear();
  hear(["late"]);
  expect(onHeldBack).toHaveBeenCalledOnce();
  hear(["echo"]);
  await ended;
  expect(onHeldBack).toHaveBeenCalledTimes(2);
});
