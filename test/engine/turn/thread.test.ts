import { describe, expect, it } from "vitest";
import type { Completion } from "../../../src/adapters/model/completion.ts";
import type { ToolCall } from "../../../src/adapters/model/types.ts";
import type { UserId } from "../../../src/base/lib/ids.ts";
import { functionResult } from "../../../src/base/prompt/ephemeris.ts";
import type { World } from "../../../src/base/prompt/types.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Sight } from "../../../src/engine/sight/view.ts";
import { Thread } from "../../../src/engine/turn/thread.ts";
import { exampleWorld, message, room } from "../../base/prompt/worlds.ts";

const here = exampleWorld.conversation;
const other = room("!other:matrix.org", "Other", {
  history: [message("!other:matrix.org", "$o", "2024-12-25T15:00:00Z", "@user:matrix.org", "elsewhere")],
});
const rooms = [room(here, "General"), other];

const sight = (change: Partial<Omit<Sight, "world">> & { world?: Partial<World> } = {}): Sight => ({
  sources: [here],
  taint: [],
  news: [],
  seenWithout: () => ({ seen: 0, unread: undefined }),
  media: { pending: [], shown: [] } as never,
  audience: ["@ann:matrix.org" as UserId],
  wasEmptied: false,
  changes: 0,
  log: undefined,
  activityBytes: 0,
  ...change,
  world: { ...exampleWorld, rooms, ...change.world },
});

const call: ToolCall = { id: "call_0", name: "Look", arguments: "{}" };
const completion = (reasoningDetails: Completion["reasoningDetails"] = []): Completion => ({
  text: "I look",
  thought: "",
  toolCalls: [call],
  reasoningDetails,
  finishReason: "tool_calls",
  usage: { promptTokens: 0, cachedTokens: 0, completionTokens: 0, costUsd: undefined, isEstimated: true },
});

/** A turn after its first step, which made a call. */
const begun = (fields: object = {}) => {
  const thread = new Thread(parseAgentSettings(fields, "test"));
  const first = thread.next(0, sight(), []);
  thread.addAnswer(completion(), thread.unique([call], 0));
  thread.addResult(call.id, functionResult("fc1.1", "seen"));
  return { thread, first };
};

describe("the steps of a turn", () => {
  it("are appended to what was sent, which stays as it is", () => {
    const { thread, first } = begun();
    const { messages } = thread.next(2, sight(), []);
    expect(messages.slice(0, 2)).toEqual(first.messages);
    expect(messages.slice(2).map(({ role }) => role)).toEqual(["assistant", "tool"]);
    expect(messages.at(-1)?.content).toContain("seen");
  });

  it("give the model its reasoning back as it came", () => {
    const thread = new Thread(parseAgentSettings({}, "test"));
    thread.next(0, sight(), []);
    const details = [{ type: "reasoning.text", text: "hm", signature: "s" }];
    thread.addAnswer(completion(details), [call]);
    expect(thread.next(1, sight(), []).messages.at(-1)).toMatchObject({ reasoningDetails: details });
  });

  it("tell what came meanwhile at the end", () => {
    const { thread } = begun();
    const news = message(here, "$n", "2024-12-25T15:31:00Z", "@user:matrix.org", "one thing more");
    const { messages, kept } = thread.next(
      2,
      sight({ world: { rooms: [room(here, "General", { newEvents: [news] }), other] } }),
      [],
    );
    expect(messages.at(-1)).toMatchObject({ role: "user", content: expect.stringContaining("one thing more") });
    expect(kept.eventIds).toEqual(["$n"]);
  });

  it("tell once which todos were added, done and removed meanwhile, and none that are as they were", () => {
    const [one, two, three] = [1, 2, 3].map((number) => ({ number, name: `todo ${number}`, isDone: false }));
    if (!one || !two || !three) throw new Error("three todos");
    const thread = new Thread(parseAgentSettings({}, "test"));
    const { messages: first } = thread.next(0, sight({ world: { todos: [one, two] } }), []);
    expect(first.at(-1)?.content).toContain('<todo id="1">todo 1</todo>');
    const later = { world: { todos: [{ ...two, isDone: true }, three] } };
    const { messages } = thread.next(1, sight(later), []);
    const told = messages.at(-1)?.content ?? "";
    expect(told.match(/<todo .*/g)).toEqual([
      '<todo id="2" done>todo 2</todo>',
      '<todo id="3">todo 3</todo>',
      '<todo id="1" removed />',
    ]);
    expect(thread.next(2, sight(later), []).messages).toEqual(messages);
  });

  it.each<[string, Parameters<typeof sight>[0]]>([
    ["other people are in the room", { audience: ["@ann:matrix.org" as UserId, "@ben:matrix.org" as UserId] }],
    ["something in it was redacted", { wasEmptied: true }],
    ["a message that the turn works on was edited", { changes: 1 }],
    [
      "a wall has closed around a room in it",
      { world: { rooms: [room(here, "General"), { ...other, isClosed: true }] } },
    ],
  ])("begin with a new render where %s", (_why, change) => {
    const { thread } = begun();
    const { messages } = thread.next(2, sight(change), []);
    expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(thread.base).toBe(2);
  });

  it("begin with a new render where no more fits", () => {
    const { thread } = begun({ approxContextCharsMax: 8_000 });
    for (let n = 0; n < 5; n++) thread.addResult("call_0", functionResult(`fc1.${n}`, "x".repeat(5_000)));
    const { messages } = thread.next(7, sight({ world: { charsMax: 8_000 } }), []);
    expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
  });

  it("begin with a new render where the reasoning that is given back does not fit", () => {
    const thread = new Thread(parseAgentSettings({ approxContextCharsMax: 8_000 }, "test"));
    thread.next(0, sight({ world: { charsMax: 8_000 } }), []);
    thread.addAnswer(completion([{ type: "reasoning.encrypted", data: "x".repeat(8_000) }]), [call]);
    const { messages } = thread.next(1, sight({ world: { charsMax: 8_000 } }), []);
    expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
  });

  it("have a render each in the layout seed", () => {
    const { thread } = begun({ layout: "seed" });
    expect(thread.next(2, sight(), []).messages.map(({ role }) => role)).toEqual(["system", "user"]);
  });

  it("have calls whose ids differ, also where the server counts from 0 in each answer", () => {
    const { thread } = begun();
    expect(thread.unique([call, { ...call, id: "call_1" }], 2).map(({ id }) => id)).toEqual(["call_0_2", "call_1"]);
  });

  it("have calls whose ids differ, also where the server gives one id to all of them", () => {
    const { thread } = begun();
    const calls = ["1", "2", "3"].map((x) => ({ ...call, arguments: `{"x":${x}}` }));
    const ids = [...thread.unique(calls, 0), ...thread.unique(calls, 0), ...thread.unique(calls, 1)].map(
      ({ id }) => id,
    );
    expect(new Set(ids).size).toBe(9);
  });

  it("have a call once that comes twice in an answer, with one id", () => {
    const [one, other] = [
      { ...call, id: "one" },
      { ...call, id: "other" },
    ];
    expect(begun().thread.unique([one, other, { ...one }], 2)).toEqual([one, other]);
  });
});
