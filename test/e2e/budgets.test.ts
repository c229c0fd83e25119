import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readView } from "../../src/edges/demo/rehearsal-view.ts";
import { count, push } from "../support/faults.ts";
import { eventually } from "../support/poll.ts";
import { newMessages, say, toolName } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

/** So few a minute that a slow machine is no excuse: they do not come back faster than it works. */
const limit = 10;
const budget = 60_000;
const spentNotice = /is used up/;

describe("what may be spent", () => {
  let stage: Stage;
  let [ann, ben, admin] = [] as unknown as [TestUser, TestUser, TestUser];
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      config: { budgets: { rooms: { "*": { tokens: budget } } }, limits: { requester: limit, room: 2_000 } },
    });
    stage.model.on("again and again", (request) => ({
      call: toolName(request, "SetAgentParameters"),
      arguments: { wakeUpTimerSeconds: 60 },
    }));
    stage.model.onEvery((request) =>
      say(request, readView(request.body.messages)?.roomId ?? "", `answer to ${newMessages(request).at(-1)?.body}`, {
        final: true,
      }),
    );
    await stage.bridge.start();
    [ann, ben, admin] = [await stage.user("ann"), await stage.user("ben"), await stage.user("admin")];
  });
  afterAll(() => stage.strike());

  /** Where the endless loop was. */
  let looped: string;
  const notices = async (user: TestUser, room: string, pattern: RegExp) =>
    (await user.messages(room)).filter(({ body }) => pattern.test(body));

  it("an endless loop of calls is stopped when its room's budget is used up, and that is said once", async () => {
    const control = await stage.directRoom(admin);
    looped = await stage.directRoom(ann);
    await admin.say(control, `!budget set --tokens 10000 room ${looped}`);
    await admin.waitForMessage(control, ({ body }) => body.includes("10000 tokens a day"));
    await ann.say(looped, "again and again");
    await ann.waitForMessage(looped, ({ body }) => spentNotice.test(body));
    const asked = stage.model.requests.length;
    for (let times = 0; times < 5; times++) await ann.say(looped, `are you there? ${times}`);
    await stage.check();
    expect(stage.model.requests.length).toBe(asked);
    expect(await notices(ann, looped, spentNotice)).toHaveLength(1);
  });

  it("another room is answered meanwhile, and so is the first after the limit was raised", async () => {
    const other = await stage.directRoom(ben);
    await ben.say(other, "hello");
    await ben.waitForMessage(other, ({ body }) => body === "answer to hello");
    const control = await stage.directRoom(admin);
    await admin.say(control, `!budget set --tokens 1000000 room ${looped}`);
    await admin.waitForMessage(control, ({ body }) => body.includes("is now 1000000 tokens a day"));
    await ann.say(looped, "and now?");
    await ann.waitForMessage(looped, ({ body }) => body === "answer to and now?");
  });

  it("a person sees what they have spent, and an admin what everybody has", async () => {
    const room = await stage.directRoom(ben);
    await ben.say(room, "!usage");
    const own = await ben.waitForMessage(room, ({ body }) => body.startsWith("Today (UTC):"));
    expect(own.body).toMatch(/@ben:\S+: [\d,]+ tokens, [\d.]+ USD, in 1 calls/);
    expect(own.body).not.toContain("@ann");
    const control = await stage.directRoom(admin);
    await admin.say(control, "!usage");
    const all = await admin.waitForMessage(control, ({ body }) => body.startsWith("Today (UTC):"));
    expect(all.body).toMatch(/this bridge: [\d,]+ tokens/);
  });

  /** A thousand messages that the homeserver pushes at once, of all these people in turn. */
  const flood = async (room: string, senders: readonly string[]) => {
    const events = Array.from({ length: 1_000 }, (_, n) => ({
      event_id: `$flood${n}:${room}`,
      room_id: room,
      sender: senders[n % senders.length],
      type: "m.room.message",
      origin_server_ts: Date.now(),
      content: { msgtype: "m.text", body: `flood ${n}` },
    }));
    for (let n = 0; n < events.length; n += 100)
      expect(await push(stage, `flood ${n} ${room}`, events.slice(n, n + 100))).toBe(200);
  };
  /** Once all of them are routed and worked on, and that all of them are history. */
  const worked = async (room: string) => {
    await eventually(async () => (await count(stage, `events where room_id = '${room}' and routed_at is null`)) === 0, {
      within: 60_000,
      what: "the flood to be routed",
    });
    await eventually(async () => (await count(stage, `wakes where room_id = '${room}' and turn_id is null`)) === 0, {
      within: 60_000,
      what: "the flood to be worked on",
    });
    await stage.check();
    const stored = `events where room_id = '${room}' and content->>'body' like 'flood %' and shown`;
    expect(await count(stage, stored)).toBe(1_000);
  };
  const calls = (room: string) =>
    stage.model.requests.filter(({ body }) => readView(body.messages)?.roomId === room).length;

  it("of a thousand messages of one person a minute's worth is answered, they are told once, and others are not kept waiting", async () => {
    const [room, other] = [await stage.directRoom(ben), await stage.directRoom(ann)];
    await flood(room, [ben.id]);
    await ann.say(other, "me too");
    await ann.waitForMessage(other, ({ body }) => body === "answer to me too");
    await worked(room);
    const woken = await count(stage, `wakes where room_id = '${room}'`);
    expect(woken).toBeGreaterThan(limit / 2);
    expect(woken).toBeLessThan(3 * limit);
    expect(calls(room)).toBeGreaterThan(0);
    expect(calls(room)).toBeLessThanOrEqual(woken);
    expect(await notices(ben, room, /faster/)).toHaveLength(1);
  }, 120_000);

  it("commands that wake agents count as messages do", async () => {
    const room = await stage.directRoom(admin);
    const events = Array.from({ length: 3 * limit }, (_, n) => ({
      event_id: `$command${n}:${room}`,
      room_id: room,
      sender: admin.id,
      type: "m.room.message",
      origin_server_ts: Date.now(),
      content: { msgtype: "m.text", body: `!delegate clerk look ${n}` },
    }));
    expect(await push(stage, `commands ${room}`, events)).toBe(200);
    // A busy machine takes its time for so many turns.
    await admin.waitForMessage(room, ({ body }) => /faster/.test(body), { within: 60_000 });
    await stage.check();
    expect(await count(stage, `wakes where room_id = '${room}'`)).toBeLessThan(2 * limit);
    expect(await count(stage, `operations where room_id = '${room}' and tool = 'delegate'`)).toBeLessThan(2 * limit);
    expect(await notices(admin, room, /faster/)).toHaveLength(1);
  });

  it("of a flood of commands a minute's worth is carried out, the person is told once, and others are not kept waiting", async () => {
    const [room, other] = [await stage.directRoom(ben), await stage.directRoom(ann)];
    const typo = `!${"x".repeat(40_000)}`;
    const events = Array.from({ length: 10 * limit }, (_, n) => ({
      event_id: `$typo${n}:${room}`,
      room_id: room,
      sender: ben.id,
      type: "m.room.message",
      origin_server_ts: Date.now(),
      content: { msgtype: "m.text", body: n === 0 ? typo : `!nothing ${n}` },
    }));
    expect(await push(stage, `typos ${room}`, events)).toBe(200);
    await ann.say(other, "!status");
    await ann.waitForMessage(other, ({ body }) => body.includes("at work here"));
    await ben.waitForMessage(room, ({ body }) => /Commands come faster/.test(body));
    await stage.check();
    const answers = await notices(ben, room, /There is no command/);
    expect(answers.length).toBeGreaterThan(limit / 2);
    expect(answers.length).toBeLessThan(2 * limit);
    expect(Math.max(...answers.map(({ body }) => body.length))).toBeLessThan(4_000);
    expect(await notices(ben, room, /faster/)).toHaveLength(1);
  });

  it("of a thousand messages of many people as many are answered as the room's budget allows, and the room is told once", async () => {
    const [room, other] = [await stage.directRoom(ben), await stage.directRoom(ann)];
    const people = Array.from({ length: 125 }, (_, n) => `@flood${n}:clevernet.test`);
    await flood(room, people);
    await ann.say(other, "and me");
    await ann.waitForMessage(other, ({ body }) => body === "answer to and me");
    await worked(room);
    expect(await count(stage, `wakes where room_id = '${room}'`)).toBe(1_000);
    const [spent] = await stage.query<{ tokens: number }>(
      `select sum(prompt_tokens + completion_tokens)::int as tokens from usage where room_id = '${room}'`,
    );
    expect(calls(room)).toBeGreaterThan(0);
    expect(spent?.tokens).toBeLessThanOrEqual(budget);
    expect(await notices(ben, room, spentNotice)).toHaveLength(1);
    expect(await notices(ben, room, /faster/)).toEqual([]);
  }, 180_000);
});
