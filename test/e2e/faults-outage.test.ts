import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { missEvents, modelHangs, startWithoutHomeserver } from "../support/outages.ts";
import { eventually } from "../support/poll.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

// The whole of each, by length and number, is in test/faults/outage.test.ts.
describe("a bridge", () => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  let rooms: string[];
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", agents: { helper: { maxConcurrentTurns: 32 } } });
    stage.model.onEvery(answerEach);
    [ann, ben] = [await stage.user("ann"), await stage.user("ben")];
    await stage.bridge.start();
    rooms = await Promise.all([1, 2, 3].map(() => stage.room(ann, [ben], ["helper"])));
  }, 240_000);
  afterAll(() => stage.strike());

  it("that was away finds 150 events when it comes, and answers each room once", async () => {
    await missEvents(stage, [ann, ben], rooms, 50);
  }, 120_000);

  it("whose model hangs answers the homeserver all the same, which pushes nothing twice", async () => {
    const direct = await Promise.all(Array.from({ length: 8 }, () => stage.directRoom(ann)));
    await modelHangs(stage, ann, direct, 3_000);
    // Longer than it waits for an answer, so that it tells what it saw instead.
  }, 240_000);

  it("that is told to end in the middle of a turn ends in order, and the turn goes on at the next start", async () => {
    const room = await stage.directRoom(ann);
    const hold = stage.toModel.hold();
    await ann.say(room, "long");
    await hold.reached();
    expect(await stage.bridge.stop()).toBe(0);
    hold.lift();
    await stage.bridge.start();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("long"));
    await stage.check();
  }, 120_000);

  it("that is told to end lets a turn end that is about to", async () => {
    const room = await stage.directRoom(ann);
    const hold = stage.toModel.hold();
    await ann.say(room, "short");
    await hold.reached();
    const calls = stage.model.requests.length;
    const ended = stage.bridge.stop();
    await eventually(() => stage.bridge.log.includes("ending"), { what: "the bridge to be ending" });
    hold.lift();
    expect(await ended).toBe(0);
    await ann.waitForMessage(room, ({ body }) => body === answerTo("short"));
    expect(stage.model.requests.length).toBe(calls + 1);
    await stage.bridge.start();
    await stage.check();
  }, 120_000);

  it("that hears from its homeserver that it cannot be reached does not take the homeserver for gone", async () => {
    await stage.bridge.stop();
    const before = stage.bridge.log.length;
    const refusal = { errcode: "M_CONNECTION_FAILED", error: "AlreadyCalled" };
    const ping = stage.toHomeserver.respond(
      { status: 502, body: refusal },
      { when: ({ path }) => path.includes("/ping"), times: 1 },
    );
    await stage.bridge.start();
    await ping.reached();
    await sleep(2_000);
    expect(stage.bridge.log.slice(before)).toContain("AlreadyCalled");
    expect(stage.bridge.log.slice(before)).not.toContain("the homeserver is back");
  }, 120_000);

  it("that starts before its homeserver waits, is not ready, and is when it comes (10 minutes in npm run faults)", async () => {
    await startWithoutHomeserver(stage, ann, 3_000);
  }, 120_000);
});
