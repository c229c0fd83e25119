import { beforeEach, expect, it } from "vitest";
import type { MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { Typing } from "../../../src/edges/delivery/typing.ts";
import { makeAgent } from "../../support/agents.ts";
import { type FixedClock, fixedClock } from "../../support/fixed-clock.ts";

const room = "!room:test" as RoomId;
const helper = makeAgent("helper");
let clock: FixedClock;
let typing: Typing;
/** Typing notices that the homeserver was sent, as `USER ROOM MILLISECONDS`. */
let told: string[];
beforeEach(() => {
  clock = fixedClock({ instantBelow: 0 });
  told = [];
  const homeserver: Pick<MatrixClient, "setTyping" | "botUserId"> = {
    botUserId: "@clevernet:test" as UserId,
    setTyping: async ({ userId }, roomId, ms) => void told.push(`${userId} ${roomId} ${ms}`),
  };
  typing = new Typing(homeserver as MatrixClient, clock);
});
const pass = async (ms: number) => {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
};
const shown = `${helper.userId} ${room} 30000`;
const hidden = `${helper.userId} ${room} 0`;

it("says nothing of work that is done within 300 ms", async () => {
  const hide = typing.show(helper, room);
  await pass(299);
  hide();
  await pass(60_000);
  expect(told).toEqual([]);
});

it("shows work that takes longer, again before the homeserver forgets, and its end", async () => {
  const hide = typing.show(helper, room);
  await pass(300);
  expect(told).toEqual([shown]);
  await pass(20_000);
  expect(told).toEqual([shown, shown]);
  hide();
  await pass(0);
  expect(told).toEqual([shown, shown, hidden]);
  await pass(60_000);
  expect(told).toHaveLength(3);
});

it("ends only when the last of several works in a room has", async () => {
  const ends = [typing.show(helper, room), typing.show(helper, room)];
  await pass(300);
  ends[0]?.();
  await pass(0);
  expect(told).not.toContain(hidden);
  ends[1]?.();
  await pass(0);
  expect(told.at(-1)).toBe(hidden);
});

it("shows work at home in the thoughts room alone, as the bridge's bot", async () => {
  const hide = typing.show({ ...helper, thoughtsRoom: "!thoughts:test" as RoomId }, HOME);
  await pass(300);
  hide();
  await pass(0);
  expect(told).toEqual(["@clevernet:test !thoughts:test 30000", "@clevernet:test !thoughts:test 0"]);
});
