import { afterAll, beforeAll, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { count, isTransaction, quiet } from "../support/faults.ts";
import type { RequestHead } from "../support/http-proxy.ts";
import { callMatrix } from "../support/matrix-api.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

let stage: Stage;
let ann: TestUser;
beforeAll(async () => {
  const permissions = { "@admin:clevernet.test": "admin", "@ann:clevernet.test": "operate" };
  stage = await Stage.set({
    database: "postgres",
    agents: { first: {}, helper: {}, short: {}, "a=b": {}, a_b: {} },
    permissions,
  });
  stage.model.onEvery(answerEach);
  ann = await stage.user("ann");
  await stage.bridge.start();
});
afterAll(() => stage.strike());

/** A request of the bridge as this agent. */
const asks =
  (agent: string, path: string) =>
  (head: RequestHead): boolean =>
    decodeURIComponent(head.path).includes(path) && head.path.includes(encodeURIComponent(stage.agentId(agent)));

it("a command that was given before the agent came is found by no sweep, and carried out by none", async () => {
  const room = await ann.createRoom();
  await ann.say(room, "!todo add an old one");
  for (let n = 1; n <= 60; n++) await ann.say(room, `before ${n}`);
  await ann.invite(room, stage.agentId());
  await ann.waitForMembership(room, "join", stage.agentId());
  await ann.say(room, "hello");
  await ann.waitForMessage(room, ({ body }) => body === answerTo("hello"));
  await stage.bridge.stop();
  await ann.say(room, "!todo add a new one");
  const push = stage.toBridge.respond({ status: 503 }, { when: isTransaction });
  await stage.bridge.start();
  await expect
    .poll(() => stage.query(`select name from todos where room_id = '${room}'`))
    .toEqual([{ name: "a new one" }]);
  push.lift();
  expect(
    await count(stage, `events where room_id = '${room}' and content->>'body' = 'before 1' and source <> 'history'`),
  ).toBe(0);
});

it("an agent whose sweep the homeserver refuses keeps no other from theirs", async () => {
  const room = await stage.directRoom(ann);
  await quiet(stage.toBridge);
  await stage.bridge.stop();
  await ann.say(room, "not pushed");
  const push = stage.toBridge.respond({ status: 503 }, { when: isTransaction });
  const refusal = { status: 403, body: { errcode: "M_USER_LOCKED", error: "not now" } };
  const sweep = stage.toHomeserver.respond(refusal, { when: asks("first", "/sync") });
  await stage.bridge.start();
  await ann.waitForMessage(room, ({ body }) => body === answerTo("not pushed"));
  expect(sweep.struck).not.toEqual([]);
  sweep.lift();
  push.lift();
});

it("a sweep in which the homeserver fails is made again within a minute", async () => {
  const room = await stage.directRoom(ann);
  await quiet(stage.toBridge);
  await stage.bridge.stop();
  await ann.say(room, "late");
  const push = stage.toBridge.respond({ status: 503 }, { when: isTransaction });
  const failure = { status: 500, body: { errcode: "M_UNKNOWN", error: "Internal server error" } };
  const sweep = stage.toHomeserver.respond(failure, { when: asks("helper", "/sync"), times: 1 });
  await stage.bridge.start();
  await sweep.reached();
  await ann.waitForMessage(room, ({ body }) => body === answerTo("late"), { within: 60_000 });
  push.lift();
}, 120_000);

it("an agent that is gone before it has read the room that it came to holds nothing up there", async () => {
  const room = await stage.room(ann, [], ["helper"]);
  const reading = stage.toHomeserver.hold({ when: asks("short", `${room}/state`) });
  await ann.invite(room, stage.agentId("short"));
  await reading.reached();
  const { as_token } = stage.homeserver.registration;
  const query = { user_id: stage.agentId("short") };
  await callMatrix(stage.homeserver.url, as_token, "POST", "v3/account/deactivate", { query, body: {} });
  await ann.waitForMembership(room, "leave", stage.agentId("short"));
  await ann.mention(room, stage.agentId(), "still there?");
  reading.lift();
  await ann.waitForMessage(room, ({ body }) => body === answerTo("still there?"));
});

it("agents whose names are alike have a thoughts room each", async () => {
  for (const agent of ["a=b", "a_b"]) await ann.say(await stage.directRoom(ann, agent), "think");
  await expect
    .poll(() => stage.query("select 1 from agents where name in ('a=b', 'a_b') and thoughts_room is null"))
    .toEqual([]);
  const rooms = await stage.query("select distinct thoughts_room from agents where name in ('a=b', 'a_b')");
  expect(rooms).toHaveLength(2);
});

it("leaves nothing unfinished", () => stage.check());
