import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { newMessages, say, toolName } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const limit = 30;
const spentNotice = /is used up/;

describe("what may be spent", () => {
  let stage: Stage;
  let [ann, ben, admin] = [] as unknown as [TestUser, TestUser, TestUser];
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      config: { budgets: { rooms: { "*": { tokens: 60_000 } } }, limits: { requester: limit, room: 1_000 } },
    });
    stage.model.on("again and again", (request) => ({
      call: toolName(request, "SetAgentParameters"),
      arguments: { wakeUpTimerSeconds: 60 },
    }));
    stage.model.onEvery((request) =>
      say(request, rooms.at(-1) ?? "", `answer to ${newMessages(request).at(-1)?.body}`, { final: true }),
    );
    await stage.bridge.start();
    [ann, ben, admin] = [await stage.user("ann"), await stage.user("ben"), await stage.user("admin")];
  });
  afterAll(() => stage.strike());

  /** The rooms that are answered: the last one. */
  const rooms: string[] = [];
  const newRoom = async (user: TestUser) => {
    const room = await stage.directRoom(user);
    rooms.push(room);
    return room;
  };
  const notices = async (user: TestUser, room: string, pattern: RegExp) =>
    (await user.messages(room)).filter(({ body }) => pattern.test(body));

  it("an endless loop of calls is stopped when its room's budget is used up, and that is said once", async () => {
    const room = await newRoom(ann);
    await admin.say(await newRoom(admin), `!budget set --tokens 10000 room ${room}`);
    await admin.waitForMessage(rooms.at(-1) ?? "", ({ body }) => body.includes("10000 tokens a day"));
    rooms.push(room);
    await ann.say(room, "again and again");
    await ann.waitForMessage(room, ({ body }) => spentNotice.test(body));
    const asked = stage.model.requests.length;
    for (let times = 0; times < 5; times++) await ann.say(room, `are you there? ${times}`);
    await stage.check();
    expect(stage.model.requests.length).toBe(asked);
    expect(await notices(ann, room, spentNotice)).toHaveLength(1);
  });

  it("another room is answered meanwhile, and so is the first after the limit was raised", async () => {
    const [first = ""] = rooms;
    const other = await newRoom(ben);
    await ben.say(other, "hello");
    await ben.waitForMessage(other, ({ body }) => body === "answer to hello");
    const control = await newRoom(admin);
    await admin.say(control, `!budget set --tokens 1000000 room ${first}`);
    await admin.waitForMessage(control, ({ body }) => body.includes("is now 1000000 tokens a day"));
    rooms.push(first);
    await ann.say(first, "and now?");
    await ann.waitForMessage(first, ({ body }) => body === "answer to and now?");
  });

  it("a person sees what they have spent, and an admin what everybody has", async () => {
    const room = await newRoom(ben);
    await ben.say(room, "!usage");
    const own = await ben.waitForMessage(room, ({ body }) => body.startsWith("Today (UTC):"));
    expect(own.body).toMatch(/@ben:\S+: [\d,]+ tokens, [\d.]+ USD, in 1 calls/);
    expect(own.body).not.toContain("@ann");
    const control = await newRoom(admin);
    await admin.say(control, "!usage");
    const all = await admin.waitForMessage(control, ({ body }) => body.startsWith("Today (UTC):"));
    expect(all.body).toMatch(/this bridge: [\d,]+ tokens/);
  });

  it("of a flood of messages a person's limit is answered, all are history, and the person is told once", async () => {
    const room = await newRoom(ben);
    const before = stage.model.requests.length;
    const flood = Array.from({ length: 200 }, (_, n) => `flood ${n}`);
    for (let n = 0; n < flood.length; n += 20)
      await Promise.all(flood.slice(n, n + 20).map((text) => ben.say(room, text)));
    await ben.waitForMessage(room, ({ body }) => body.startsWith("Messages come faster"));
    await stage.check();
    const stored = await stage.query<{ n: number }>(
      `select count(*)::int as n from events where room_id = '${room}' and content->>'body' like 'flood %' and shown`,
    );
    expect(stored[0]?.n).toBe(200);
    const woken = await stage.query<{ n: number }>(`select count(*)::int as n from wakes where room_id = '${room}'`);
    expect(woken[0]?.n).toBeGreaterThan(0);
    expect(woken[0]?.n).toBeLessThan(100);
    expect(stage.model.requests.length - before).toBeLessThanOrEqual(woken[0]?.n ?? 0);
    expect(await notices(ben, room, /faster/)).toHaveLength(1);
  });

  it("everybody else is answered during a flood", async () => {
    const room = await newRoom(ann);
    await ann.say(room, "me too");
    await eventually(async () => (await notices(ann, room, /^answer to me too$/)).length === 1, { what: "an answer" });
  });
});
