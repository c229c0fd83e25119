import fc from "fast-check";
import { expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { logLines } from "../../../src/base/prompt/log.ts";
import type { LogEntry, LogView } from "../../../src/base/prompt/types.ts";

const rooms = ["!a:test", "!b:test"] as RoomId[];
const source = fc.constantFrom(...rooms, "ephemeris" as const);
const anyEntry: fc.Arbitrary<LogEntry> = fc
  .tuple(source, fc.nat(200), fc.constantFrom("ann", "ben", undefined), fc.boolean())
  .map(([source, minutes, sender, isMessage]) => ({
    source,
    at: new Date(minutes * 60_000),
    element: element(
      isMessage ? "message" : "thought",
      isMessage ? { sender, sent: sender === undefined } : {},
      "words",
    ),
  }));
const anyNumbers = fc.constantFrom(undefined, new Map([[rooms[0] as RoomId, 1]]), new Map([[rooms[0] as RoomId, 2]]));
const anyLeftOut = fc.subarray([...rooms, "ephemeris" as const]);
const anyZone = fc.constantFrom("UTC", "Asia/Kolkata");

const viewOf = (entries: readonly LogEntry[], leftOut: readonly LogEntry["source"][], numbers: LogView["numbers"]) => ({
  entries,
  leftOut: new Set(leftOut),
  ...(numbers && { numbers }),
});

it("names who speaks again behind somebody else's doing", () => {
  const at = new Date(0);
  const entry = (name: "message" | "roomEvent", sender: string): LogEntry => ({
    source: rooms[0] as RoomId,
    at,
    element:
      name === "message" ? element(name, { sender }, "words") : element(name, { sender, eventType: "m.room.topic" }),
  });
  const entries = [
    entry("message", "mal"),
    entry("roomEvent", "ann"),
    entry("message", "mal"),
    entry("message", "mal"),
  ];
  const texts = logLines(viewOf(entries, [], undefined), "UTC").map(({ text }) => text);
  expect(texts.map((text) => /sender="(\w+)"/.exec(text)?.[1])).toEqual(["mal", "ann", "mal", undefined]);
});

it("writes a log that goes on from another as if it were written for the first time", () => {
  const look = fc.tuple(fc.array(anyEntry, { maxLength: 6 }), fc.nat(3), anyLeftOut, anyNumbers, anyZone);
  fc.assert(
    fc.property(fc.array(look, { maxLength: 8 }), fc.boolean(), (looks, stays) => {
      let [entries, before]: [readonly LogEntry[], LogView | undefined] = [[], undefined];
      for (const [added, dropped, leftOut, numbers, zone] of looks) {
        entries = [...entries.slice(stays ? 0 : dropped), ...added];
        const log: LogView = viewOf(entries, stays ? [] : leftOut, stays ? undefined : numbers);
        expect(logLines(log, zone, before)).toEqual(logLines({ ...log }, zone));
        before = log;
      }
    }),
  );
});
