import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { functionCall, functionResult } from "../../../src/base/prompt/ephemeris.ts";
import { logHead, logLines } from "../../../src/base/prompt/log.ts";
import type { LogView } from "../../../src/base/prompt/types.ts";
import type { LogState } from "../../../src/domain/tables/steps.ts";
import { advance, emptyLog, findSaid, type LogItem } from "../../../src/engine/sight/log.ts";

const here = "!here:test" as RoomId;
const [second, third] = ["!a:test" as RoomId, "!z:test" as RoomId];
const long = "word ".repeat(100);

const item = (source: RoomId, position: number, body = "hello"): LogItem => ({
  position,
  arrivedAt: new Date(position * 1_000),
  entry: {
    source,
    at: new Date(position * 1_000),
    eventId: `$${position}` as EventId,
    element: element("message", { id: position, sender: "ann" }, body),
  },
});

const show = (state: LogState, items: readonly LogItem[], { max = 27_500, full = new Set<RoomId>() } = {}) => {
  const { log, next } = advance(state, items, { here, charsMax: 50_000, timeZone: "UTC", max, full });
  return { log, next, ids: log.entries.map(({ eventId }) => eventId), text: textIn(log) };
};
const textIn = (log: LogView): string =>
  logHead(log) +
  logLines(log, "UTC")
    .map(({ text }) => text)
    .join("");

describe("the log of a conversation", () => {
  it("stands in the order in which it arrived, whatever room it is from", () => {
    const { ids } = show(emptyLog, [item(here, 1), item(here, 4), item(second, 2), item(third, 3)]);
    expect(ids).toEqual(["$1", "$2", "$3", "$4"]);
  });

  it("begins as it did before, whichever rooms go on, for as long as it is not cut", () => {
    const turns = fc.array(fc.array(fc.constantFrom(here, second, third), { maxLength: 4 }), { maxLength: 12 });
    fc.assert(
      fc.property(turns, (turns) => {
        let [state, before] = [emptyLog, "<log>"];
        const events: LogItem[] = [];
        for (const rooms of turns) {
          for (const roomId of rooms) events.push(item(roomId, events.length + 1));
          const { text, next } = show(state, events);
          expect(text.startsWith(before)).toBe(true);
          [state, before] = [next, text];
        }
        expect(show(state, events).ids).toHaveLength(events.length);
      }),
      { numRuns: 200 },
    );
  });

  it("begins as it did before, also where somebody speaks again in a room of which nothing was left", () => {
    const events = [item(second, 1, long), ...Array.from({ length: 100 }, (_, index) => item(here, index + 2, long))];
    const { text, next } = show(emptyLog, events);
    const kept = events.filter(({ position, entry }) => position > (next.from[entry.source] ?? 0));
    expect(show(next, [...kept, item(second, 102)]).text.startsWith(text)).toBe(true);
  });

  it("is cut to the newer half at once when it has outgrown its share, and not again before it has again", () => {
    let state = emptyLog;
    const events: LogItem[] = [];
    const sizes: number[] = [];
    for (let position = 1; position <= 120; position++) {
      events.push(item(here, position, long));
      const { ids, next } = show(state, events);
      expect(ids.at(-1)).toBe(`$${position}`);
      sizes.push(ids.length);
      state = next;
    }
    const cuts = sizes.flatMap((size, index) => (size < (sizes[index - 1] ?? 0) ? [index] : []));
    expect(cuts.length).toBeGreaterThan(1);
    expect(cuts.length).toBeLessThan(10);
    for (const cut of cuts) expect((sizes[cut] ?? 0) / (sizes[cut - 1] ?? 1)).toBeCloseTo(0.5, 1);
  });

  it("keeps what was said last in the conversation's own room, however much is said elsewhere", () => {
    const own = Array.from({ length: 10 }, (_, index) => item(here, index + 1, long));
    const others = Array.from({ length: 200 }, (_, index) => item(index % 2 ? second : third, index + 11, long));
    const { ids, log } = show(emptyLog, [...own, ...others]);
    expect(ids.slice(0, 10)).toEqual(own.map(({ entry }) => entry.eventId));
    expect(ids.length).toBeGreaterThan(20);
    expect(log.leftOut).toEqual(new Set([second, third]));
  });

  it("is no shorter where the own room has little to keep", () => {
    const others = Array.from({ length: 200 }, (_, index) => item(second, index + 2, long));
    const alone = show(emptyLog, others).ids.length;
    expect(show(emptyLog, [item(here, 1), ...others]).ids.length).toBeGreaterThanOrEqual(alone);
  });

  it("says of which rooms something is left out, also where nothing is left of one", () => {
    const events = [item(second, 1, long), ...Array.from({ length: 100 }, (_, index) => item(here, index + 2, long))];
    const { text } = show(emptyLog, events);
    const [head, first, own, line] = text.split("\n");
    expect(line).toMatch(/^<message/);
    expect([head, first, own]).toEqual([
      "<log truncated>",
      `<room roomId="${second}" truncated />`,
      `<room roomId="${here}" truncated />`,
    ]);
  });

  it("loses the older half of a source of which there is more than is read, and not one event in each turn", () => {
    let [state, before] = [emptyLog, [] as (string | undefined)[]];
    let cuts = 0;
    const events = Array.from({ length: 600 }, (_, index) => item(here, index + 1));
    for (let last = 300; last <= 600; last++) {
      const read = events.slice(last - 200, last);
      const seen = read.filter(({ position }) => position > (state.from[here] ?? Number.NEGATIVE_INFINITY));
      const full = new Set(seen.length === 200 ? [here] : []);
      const { ids, next, log } = show(state, seen, { max: 1e6, full });
      expect(ids.at(-1)).toBe(`$${last}`);
      expect(log.leftOut).toEqual(new Set([here]));
      if (ids[0] !== before[0]) cuts += 1;
      [state, before] = [next, ids];
    }
    expect(before.length).toBeGreaterThanOrEqual(100);
    expect(cuts).toBeLessThan(6);
  });

  it("remembers where it begins, and not each turn", () => {
    let state = emptyLog;
    const events: LogItem[] = [];
    for (let position = 1; position <= 300; position++) {
      events.push(item(here, position, long));
      state = show(state, events).next;
    }
    expect(JSON.stringify(state).length).toBeLessThan(100);
  });
});

describe("a result in the log", () => {
  const acted = (position: number, made: ReturnType<typeof functionResult>): LogItem => ({
    ...item(here, position),
    entry: { source: "ephemeris", at: undefined, element: made },
  });
  const call = acted(1, functionCall("fc1.1", "FS_Read_k3f9", { path: "rooms:/a" }, 17));
  const result = acted(2, functionResult("fc1.1", `first line\n${long}`, 17));

  it("is whole until the log is cut, and from then on its beginning, with its length and its operation", () => {
    const few = [call, result, item(here, 3)];
    const { text, next } = show(emptyLog, few);
    expect(text).toContain(long);
    expect(next.brief).toBe(0);
    const many = [call, result, item(here, 3), item(here, 4)];
    const cut = show(next, many, { max: 600 });
    const shown = cut.log.entries.find(({ element }) => element.name === "functionResult")?.element;
    expect(shown?.attributes).toEqual({ id: "fc1.1", operation: 17, chars: 511, truncated: true });
    expect(shown?.children).toBe("first line…");
    expect(show(cut.next, many, { max: 600 }).text).toBe(cut.text);
  });
});

it("calls by which something was said in a room that is open are known, with their words", () => {
  const sent = (id: string, roomId: string) => functionResult(id, element("message", { roomId, sent: true }, "hi"));
  const said = findSaid(
    [sent("fc1", here), sent("fc2", "!closed:test"), functionResult("fc3", "done")],
    new Set([here]),
  );
  expect(said).toEqual([{ id: "fc1", text: "hi" }]);
});
