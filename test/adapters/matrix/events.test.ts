import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type ClientEvent, readEvent } from "../../../src/adapters/matrix/events.ts";

const event = {
  event_id: "$event",
  room_id: "!room:example.org",
  sender: "@mia:example.org",
  type: "m.room.message",
  content: { msgtype: "m.text", body: "hello" },
  origin_server_ts: 1_700_000_000_000,
};
const accepted = (value: unknown): ClientEvent => {
  const reading = readEvent(value);
  if (!reading.isValid) throw new Error(reading.reason);
  return reading.event;
};
const reason = (value: unknown): string | undefined => {
  const reading = readEvent(value);
  return reading.isValid ? undefined : reading.reason;
};
const nested = (depth: number): object => (depth === 0 ? {} : { inner: nested(depth - 1) });

describe("events", () => {
  it("are read as they are, without what is not kept", () => {
    const state = { ...event, state_key: "", unsigned: { age: 5 } };
    expect(accepted({ ...state, age: 5, user_id: "@mia:example.org" })).toEqual(state);
  });

  it.each<[string, unknown]>([
    ["no object", null],
    ["a list", [event]],
    ["no event id", { ...event, event_id: undefined }],
    ["an event id of another kind", { ...event, event_id: "!event" }],
    ["an event id that is a number", { ...event, event_id: 5 }],
    ["an event id that is too long", { ...event, event_id: `$${"e".repeat(255)}` }],
    ["an id that is too long in bytes", { ...event, room_id: `!${"ü".repeat(128)}` }],
    ["an event id that is only a sigil", { ...event, event_id: "$" }],
    ["a sender without a server", { ...event, sender: "@mia" }],
    ["a sender with a NUL", { ...event, sender: "@m\0a:example.org" }],
    ["an empty type", { ...event, type: "" }],
    ["a state key that is no text", { ...event, state_key: null }],
    ["a time that is text", { ...event, origin_server_ts: "now" }],
    ["no time", { ...event, origin_server_ts: undefined }],
    ["content that is text", { ...event, content: "hello" }],
    ["content that is a list", { ...event, content: [] }],
    ["a NUL in a text", { ...event, content: { body: "a\0b" } }],
    ["a NUL in a name", { ...event, content: { a: [{ "b\0": 1 }] } }],
    ["a lone surrogate", { ...event, content: { body: ["\ud800"] } }],
    ["more than 64 KB", { ...event, content: { body: "ü".repeat(33_000) } }],
    ["a depth of 200", { ...event, content: nested(200) }],
  ])("are refused with %s", (_, value) => {
    expect(reason(value)).toMatch(/\w+ \w+/);
  });

  it("are taken with everything else that Synapse lets pass", () => {
    const body = "\uFFFE \u202E \u{E0041} \u0001 </message>";
    const content = { msgtype: 5, body, [`m.${"x".repeat(300)}`]: [1e300, null, true], deep: nested(50) };
    expect(accepted({ ...event, content }).content).toEqual(content);
    expect(accepted({ ...event, content: { body: "a".repeat(65_000) } })).toBeDefined();
  });

  it("read any JSON without an error, and what they accept can be stored", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue({ stringUnit: "binary" })), (content) => {
        const reading = readEvent({ ...event, content });
        const text = JSON.stringify(content);
        expect(reading.isValid).toBe(!text.includes("\\u0000") && !/\\ud[89a-f]/.test(text));
      }),
    );
    fc.assert(
      fc.property(fc.anything(), fc.constantFrom(...Object.keys(event)), (value, key) => {
        readEvent({ ...event, [key]: value });
        readEvent(value);
      }),
    );
  });

  it("have a time that is a date, whatever the sender's server claims", () => {
    const at = (origin_server_ts: number) => new Date(accepted({ ...event, origin_server_ts }).origin_server_ts);
    expect(at(-5).getTime()).toBe(0);
    expect(at(1.5).getTime()).toBe(1);
    expect(at(2 ** 60).getUTCFullYear()).toBe(9999);
  });

  it("lose what stands beside the event and cannot be stored", () => {
    expect(accepted({ ...event, unsigned: { prev_content: { topic: "a\0" } } })).toEqual(event);
    expect(accepted({ ...event, unsigned: 5, redacts: 5 })).toEqual(event);
  });

  it("let nobody hide by joining with an unreadable name, or at no time", () => {
    const join = { ...event, type: "m.room.member", state_key: "@mia:example.org" };
    for (const displayname of ["M\0a", "\udc00", "a".repeat(70_000), nested(200)]) {
      const { content } = accepted({ ...join, content: { membership: "join", displayname } });
      expect(content).toEqual({ membership: "join" });
    }
    for (const origin_server_ts of [undefined, "now", { at: 5 }])
      expect(accepted({ ...join, origin_server_ts, content: { membership: "join" } }).origin_server_ts).toBe(0);
    expect(reason({ ...join, content: { membership: "jo\0in" } })).toBe("content has a NUL in it");
  });

  it("name what is redacted, in old and new room versions", () => {
    const redaction = { ...event, type: "m.room.redaction" };
    expect(accepted({ ...redaction, redacts: "$old", content: {} }).redacts).toBe("$old");
    expect(accepted({ ...redaction, content: { redacts: "$new" } }).redacts).toBe("$new");
    expect(accepted({ ...event, content: { redacts: "$new" } }).redacts).toBeUndefined();
  });
});
