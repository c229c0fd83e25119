import { describe, expect, it } from "vitest";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { type Element, element } from "../../../src/base/lmml/element.ts";
import { functionCall, functionResult, thought } from "../../../src/base/prompt/ephemeris.ts";
import type { RoomView } from "../../../src/base/prompt/types.ts";
import type { SeenEvent } from "../../../src/domain/tables/sight.ts";
import { findLate, withLate } from "../../../src/engine/sight/late.ts";
import { logItems } from "../../../src/engine/sight/log-items.ts";
import { timelineEntry } from "../../../src/engine/sight/timeline.ts";
import { room } from "../../base/prompt/worlds.ts";

const [here, other] = ["!here:test" as RoomId, "!other:test" as RoomId];
const [ann, self, bot] = ["@ann:test", "@agent_helper:test", "@clevernet:test"] as UserId[] as [UserId, UserId, UserId];

const event = (number: number, sender: UserId, body: string, { msgtype = "m.text", roomId = here, replyTo = 0 } = {}) =>
  ({
    seq: number,
    number,
    numbers: null,
    eventId: `$${number}` as EventId,
    roomId,
    type: "m.room.message",
    stateKey: null,
    sender,
    sentAt: new Date(0),
    shownAt: new Date(number * 1_000),
    content: {
      msgtype,
      body,
      ...(replyTo > 0 && { "m.relates_to": { "m.in_reply_to": { event_id: `$${replyTo}` } } }),
    },
    position: number,
    media: null,
    editedAt: null,
  }) as unknown as SeenEvent;

const read = (events: readonly SeenEvent[], thoughts: readonly Element[] = [], more: object = {}) => {
  const ephemeris = thoughts.map((_, index) => ({ id: index + 1, entry: "", at: new Date(index), taint: [] }));
  const reading = {
    self,
    botUserId: bot,
    prefix: "!",
    open: new Set([here]),
    fresh: new Set<EventId>(),
    until: undefined,
  };
  return logItems({ events, ephemeris }, thoughts, { ...reading, ...more }).map(({ entry }) => entry.element);
};

describe("in the log", () => {
  it("words that were said stand once, and not as a call or a thought as well", () => {
    const sent = (id: string, roomId: RoomId) =>
      functionResult(id, element("message", { roomId, sender: self, sent: true }, "hello there"));
    const thoughts = [
      thought(new Date(0), "I greet them."),
      thought(new Date(0), "hello there "),
      functionCall("fc1", "SendMessage_k3f9", { content: "hello there" }),
      sent("fc1", here),
      thought(new Date(0), "the last text", here),
    ];
    const shown = read([event(1, self, "hello there")], thoughts);
    expect(shown.map(({ name, children }) => [name, children])).toEqual([
      ["message", "hello there"],
      ["thought", "I greet them."],
    ]);
  });

  it("words that were said behind a wall stand as the call alone", () => {
    const result = functionResult(
      "fc1",
      element("message", { roomId: other, sender: self, sent: true }, "hello there"),
    );
    const call = functionCall("fc1", "SendMessage_k3f9", { roomId: other, content: "hello there" });
    const shown = read([], [call, result, thought(new Date(0), "the last text", other)]);
    expect(shown.map(({ name }) => name)).toEqual(["functionCall", "functionResult", "thought"]);
    expect(shown[1]).toEqual(element("functionResult", { id: "fc1" }, [element("result", {}, "sent")]));
    expect(shown[2]?.attributes).toEqual({});
  });

  it("calls and results have the numbers of their operations, by which people speak of them", () => {
    const result = element("message", { roomId: other, sender: self, sent: true }, "hello");
    const shown = read([], [functionCall("fc1", "SendMessage_k3f9", {}, 17), functionResult("fc1", result, 17)]);
    expect(shown.map(({ attributes }) => attributes.operation)).toEqual([17, 17]);
  });

  it("commands, and the bridge's answers to them, take one short line each", () => {
    const files = `3 files\n${"a.txt\n".repeat(50)}`;
    const shown = read([
      event(1, ann, "!write a.txt one\ntwo"),
      event(2, self, files, { msgtype: "m.notice" }),
      event(3, bot, files, { msgtype: "m.notice" }),
      event(4, ann, "!"),
      event(5, ann, "!!! look\nhere"),
      event(6, ann, files, { msgtype: "m.notice" }),
    ]);
    expect(shown.map(({ children, attributes }) => [children, attributes.truncated ?? false])).toEqual([
      ["!write a.txt one", true],
      ["3 files", true],
      ["3 files", true],
      ["!", false],
      ["!!! look\nhere", false],
      [files, false],
    ]);
  });

  it("a command or its answer stands whole once a person has replied to it, by no command", () => {
    const answer = "3 files\na.txt\nb.txt";
    const events = [
      event(1, ann, "!write a.txt one\ntwo"),
      event(2, self, answer, { msgtype: "m.notice", replyTo: 1 }),
      event(3, bot, answer, { msgtype: "m.notice" }),
      event(4, ann, "which of them is newer?", { replyTo: 2 }),
      event(5, ann, "!forget", { replyTo: 3 }),
      event(6, bot, "a notice", { msgtype: "m.notice", replyTo: 3 }),
    ];
    const texts = (more: object) => read(events, [], more).map(({ children }) => children);
    const shown = ["!write a.txt one", answer, "3 files"];
    expect(texts({}).slice(0, 3)).toEqual(shown);
    expect(texts({ fresh: new Set(["$4"]) }).slice(0, 3)).toEqual(shown);
    const begun = event(7, ann, "and this?");
    const inThread = {
      ...begun,
      content: { ...begun.content, "m.relates_to": { rel_type: "m.thread", event_id: "$3" } },
    };
    expect(read([...events, inThread])[2]?.children).toBe(answer);
    const asked = [...events, event(7, ann, "why did I write that?", { replyTo: 1 })];
    expect(read(asked)[0]?.children).toBe("!write a.txt one\ntwo");
  });
});

describe("what has arrived since the first new event", () => {
  const views = (fresh: readonly SeenEvent[]): RoomView[] => [
    room(here, "Here", { newEvents: fresh.map(timelineEntry) }),
    room(other, "Other", { newEvents: [] }),
  ];
  const events = [
    event(1, ann, "before"),
    event(2, ann, "question"),
    event(3, self, "an answer that comes late"),
    event(4, ann, "elsewhere", { roomId: other }),
  ];
  const bodiesOf = (shown: RoomView | undefined) =>
    shown?.newEvents.map((entry) => (entry.kind === "message" ? entry.body : ""));

  it("stands behind the log, the agent's own words too, and comes to the log with the next turn", () => {
    const looking = { views: views([events[1] as SeenEvent]), seenBefore: 1 };
    const late = findLate(events, looking, here);
    const [own, elsewhere] = withLate(looking.views, late, here);
    expect(bodiesOf(own)).toEqual(["question", "an answer that comes late"]);
    expect(bodiesOf(elsewhere)).toEqual(["elsewhere"]);
    const fresh = new Set(own?.newEvents.map(({ eventId }) => eventId));
    expect(read(events, [], { fresh, until: late.since }).map(({ children }) => children)).toEqual(["before"]);
  });

  it("stands in the log where nothing is new, or the agent has seen it before", () => {
    for (const [fresh, seenBefore] of [[[], 1] as const, [[events[1] as SeenEvent], 2] as const])
      expect(findLate(events, { views: views(fresh), seenBefore }, here).since).toBeUndefined();
  });
});
