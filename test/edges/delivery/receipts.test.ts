import { beforeEach, expect, it } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { Receipts } from "../../../src/edges/delivery/receipts.ts";
import { type FixedClock, fixedClock } from "../../support/fixed-clock.ts";

const room = "!room:test" as RoomId;
const helper = "@agent_helper:test" as UserId;
const [first, second] = ["$first" as EventId, "$second" as EventId];
let clock: FixedClock;
let receipts: Receipts;
/** Receipts that the homeserver was sent, as `USER ROOM EVENT`. */
let told: string[];
beforeEach(() => {
  clock = fixedClock({ instantBelow: 0 });
  told = [];
  const receipt = async ({ userId }: { userId: UserId }, roomId: RoomId, eventId: EventId) => {
    told.push(`${userId} ${roomId} ${eventId}`);
    throw new Error("the homeserver is away");
  };
  receipts = new Receipts({ receipt }, clock);
});
const pass = async (ms: number) => {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
};
const never = () => false;

it("shows what was read after 300 ms, once, whether the homeserver takes it or not", async () => {
  receipts.read(helper, room, first, never);
  await pass(299);
  expect(told).toEqual([]);
  await pass(60_000);
  expect(told).toEqual([`${helper} ${room} ${first}`]);
});

it("shows the last of what was read within 300 ms", async () => {
  receipts.read(helper, room, first, never);
  await pass(200);
  receipts.read(helper, room, second, never);
  await pass(100);
  await pass(60_000);
  expect(told).toEqual([`${helper} ${room} ${second}`]);
});

it("says nothing where an answer has come meanwhile", async () => {
  let hasAnswered = false;
  receipts.read(helper, room, first, () => hasAnswered);
  hasAnswered = true;
  await pass(60_000);
  expect(told).toEqual([]);
});

it("shows the last where only what was read before it was answered meanwhile", async () => {
  receipts.read(helper, room, first, () => true);
  await pass(200);
  receipts.read(helper, room, second, never);
  await pass(100);
  expect(told).toEqual([`${helper} ${room} ${second}`]);
});

it("keeps rooms and users apart", async () => {
  const other = "!other:test" as RoomId;
  receipts.read(helper, room, first, never);
  receipts.read(helper, other, second, never);
  await pass(300);
  expect(told.toSorted()).toEqual([`${helper} ${other} ${second}`, `${helper} ${room} ${first}`].toSorted());
});
