import { expect, test } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { functionCall, functionResult, thought } from "../../../src/base/prompt/ephemeris.ts";
import { type Errand, errandPrompt } from "../../../src/base/prompt/subagent.ts";
import { all, textOf } from "../../support/elements.ts";

const errand: Errand = {
  serverName: "matrix.org",
  now: new Date("2026-11-21T12:00:00Z"),
  timeZone: "Europe/Berlin",
  agent: { userId: "@agent_helper:matrix.org" as UserId },
  name: "clerk",
  prompt: "You are the clerk.",
  model: "some/model",
  delegates: [],
  room: { roomId: "!r:matrix.org" as RoomId, name: "Tea" },
  people: [{ userId: "@ann:matrix.org" as UserId, displayName: "Ann" }],
  todo: { number: 3, name: "Buy tea", isDone: false },
  request: functionCall("fc7.1", "delegate_k3f9", { subAgent: "clerk", request: "find the tea" }),
  entries: [],
  reminders: [],
  charsMax: 50_000,
};
const userOf = (change: Partial<Errand>) => parse(errandPrompt({ ...errand, ...change }).user);

test("a sub-agent is told who it is, for whom it works, where and when, and what it is asked for", () => {
  const { system, user } = errandPrompt(errand);
  expect(system).toContain("the sub-agent clerk of @agent_helper:matrix.org");
  expect(system.endsWith("\n\nYou are the clerk.")).toBe(true);
  expect(system).not.toContain("agentGuide");
  expect(
    user,
  ).toBe(`<chatInterface currentDatetime="2026-11-21 13:00:00 +0100" agentUnderlyingModel="some/model" agentRunningOnSystem="matrix.org">
  <chatSystem systemId="matrix.org" loggedInAs="@agent_helper:matrix.org">
    <room systemId="matrix.org" roomId="!r:matrix.org" roomName="Tea" loggedInAs="@agent_helper:matrix.org">
      <roomMember userId="@ann:matrix.org" displayName="Ann" />
    </room>
  </chatSystem>
  <todo id="3">Buy tea</todo>
  <newEvents>
    <functionCall id="fc7.1" function="delegate_k3f9">
      <parameter name="subAgent">clerk</parameter>
      <parameter name="request">find the tea</parameter>
    </functionCall>
  </newEvents>
</chatInterface>`);
});

test("at home it is told of the people without a room", () => {
  const shown = userOf({ room: undefined, todo: undefined });
  expect([all(shown, "room"), all(shown, "roomMember").length]).toEqual([[], 1]);
});

test("one that may delegate is told to whom", () => {
  const { system } = errandPrompt({ ...errand, delegates: [{ name: "planner", description: "plans <everything>" }] });
  expect(system).toContain("- planner: plans &lt;everything>");
});

test("what it did before follows the request, in order", () => {
  const entries = [
    thought(errand.now, "hm"),
    functionCall("fc7.1.1", "FS_Read_k3f9", { path: "a" }),
    functionResult("fc7.1.1", "tea </newEvents>"),
  ];
  const [events] = all(userOf({ entries }), "newEvents");
  const names = typeof events?.children === "string" ? [] : events?.children.map(({ name }) => name);
  expect(names).toEqual(["functionCall", "thought", "functionCall", "functionResult"]);
  expect(all(events, "result").map(textOf)).toEqual(["tea </newEvents>"]);
});

test("however much there is, it stays within its limit, and says what is missing", () => {
  const long = "x".repeat(200_000);
  const entries = Array.from({ length: 40 }, (_, n) => functionResult(`fc7.1.${n}`, long));
  const { system, user } = errandPrompt({
    ...errand,
    prompt: long,
    delegates: Array.from({ length: 50 }, (_, n) => ({ name: `s${n}`, description: long })),
    people: Array.from({ length: 50 }, (_, n) => ({ userId: `@${n}${long}:h` as UserId, displayName: long })),
    todo: { number: 3, name: long, isDone: false },
    request: functionCall("fc7.1", "delegate_k3f9", { request: long }),
    entries,
    charsMax: 8_000,
  });
  expect(system.length + user.length).toBeLessThanOrEqual(8_000);
  expect(system).toContain("[truncated]");
  const [events] = all(parse(user), "newEvents");
  expect(Number(events?.attributes.eventsLeftOut)).toBeGreaterThan(0);
  expect(all(events, "functionCall")).toHaveLength(1);
});
