import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { functionResult } from "../../../src/base/prompt/ephemeris.ts";
import type { LogPiece } from "../../../src/base/prompt/types.ts";
import type { LogState } from "../../../src/domain/tables/steps.ts";
import { advance, type LogItem, saidIn } from "../../../src/engine/sight/log.ts";

const here = "!here:test" as RoomId;
const [second, third] = ["!a:test" as RoomId, "!z:test" as RoomId];
const empty: LogState = { from: {}, marks: [] };

const item = (source: RoomId, position: number, body = "hello"): LogItem => ({
  source,
  position,
  arrivedAt: new Date(position * 1_000),
  element: element(
    "message",
    {
      systemId: "test",
      roomId: source,
      timestamp: "2026-01-01T00:00:00Z",
      sender: "@ann:test",
      messageType: "m.text",
      eventId: `$${position}`,
    },
    body,
  ),
  fresh: false,
});

const show = (state: LogState, turnId: number, items: readonly LogItem[], fresh: readonly number[] = []) => {
  const marked = items.map((each) => ({ ...each, fresh: fresh.includes(each.position) }));
  const { pieces, next } = advance(state, marked, { turnId, here, charsMax: 50_000, max: 27_500, full: new Set() });
  return { pieces, next, ids: idsOf(pieces) };
};
const idsOf = (pieces: readonly LogPiece[]): string[] =>
  pieces.flatMap(({ elements }) => elements.map(({ attributes }) => String(attributes.eventId)));

describe("the log of a conversation", () => {
  it("shows at first what there is, the conversation's own room last", () => {
    const { pieces } = show(empty, 1, [item(here, 1), item(second, 2), item(third, 3)]);
    expect(pieces.map(({ source }) => source)).toEqual([second, third, here]);
  });

  it("leaves to the next turn what is new in this one", () => {
    const first = show(empty, 1, [item(here, 1), item(here, 2)], [2]);
    expect(first.ids).toEqual(["$1"]);
    expect(show(first.next, 2, [item(here, 1), item(here, 2), item(here, 3)], [3]).ids).toEqual(["$1", "$2"]);
  });

  it("begins as it did before, whichever rooms go on, for as long as it is not cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.constantFrom(here, second, third), { maxLength: 4 }), { maxLength: 12 }),
        (turns) => {
          let [state, position] = [empty, 0];
          const events: LogItem[] = [];
          let before: string[] = [];
          for (const [turn, rooms] of turns.entries()) {
            const news = rooms.map((roomId) => item(roomId, ++position));
            events.push(...news);
            const fresh = news.filter(({ source }) => source === here).map((each) => each.position);
            const { ids, next } = show(state, turn, events, fresh);
            expect(ids.slice(0, before.length)).toEqual(before);
            [state, before] = [next, ids];
          }
          expect(show(state, turns.length, events).ids.toSorted()).toEqual(
            events.map(({ position }) => `$${position}`).toSorted(),
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  it("shows the same again to a further step of the turn", () => {
    const first = show(empty, 1, [item(here, 1), item(here, 2)], [2]);
    const again = show(first.next, 1, [item(here, 1), item(here, 2), item(here, 3)], [2, 3]);
    expect(again.ids).toEqual(["$1"]);
    expect(again.next.marks).toHaveLength(1);
  });

  it("is cut to the newer half at once when it has outgrown its share, and not again before it has again", () => {
    const long = "word ".repeat(100);
    let state = empty;
    const events: LogItem[] = [];
    const sizes: number[] = [];
    for (let position = 1; position <= 120; position++) {
      events.push(item(here, position, long));
      const { ids, next } = show(state, position, events);
      expect(ids.at(-1)).toBe(`$${position}`);
      sizes.push(ids.length);
      state = next;
    }
    const cuts = sizes.flatMap((size, index) => (size < (sizes[index - 1] ?? 0) ? [index] : []));
    expect(cuts.length).toBeGreaterThan(1);
    expect(cuts.length).toBeLessThan(10);
    for (const cut of cuts) expect((sizes[cut] ?? 0) / (sizes[cut - 1] ?? 1)).toBeCloseTo(0.5, 1);
  });

  it("loses the older half of a source of which there is more than is read, and not one event in each turn", () => {
    let [state, before] = [empty, [] as string[]];
    let cuts = 0;
    const events = Array.from({ length: 600 }, (_, index) => item(here, index + 1));
    for (let last = 300; last <= 600; last++) {
      const read = events.slice(last - 200, last);
      const seen = read.filter(({ position }) => position > (state.from[here] ?? Number.NEGATIVE_INFINITY));
      const full = new Set(seen.length === 200 ? [here] : []);
      const { pieces, next } = advance(state, seen, { turnId: last, here, charsMax: 1e6, max: 1e6, full });
      const ids = idsOf(pieces);
      expect(ids.at(-1)).toBe(`$${last}`);
      if (ids[0] !== before[0]) cuts += 1;
      [state, before] = [next, ids];
    }
    expect(before.length).toBeGreaterThanOrEqual(100);
    expect(cuts).toBeLessThan(6);
  });

  it("is cut from its beginning in each source, also where all of it arrived at once", () => {
    const long = "word ".repeat(100);
    const events = Array.from({ length: 100 }, (_, index) => item(index % 2 ? here : second, index + 1, long));
    const { pieces } = show(
      empty,
      1,
      events.map((each) => ({ ...each, arrivedAt: new Date(0) })),
    );
    const shown = new Set(idsOf(pieces));
    expect(shown.size).toBeGreaterThan(10);
    expect([...shown].toSorted()).toEqual(
      events
        .slice(-shown.size)
        .map(({ position }) => `$${position}`)
        .toSorted(),
    );
  });

  it("forgets the marks of what it does not show any more", () => {
    let state = empty;
    const events: LogItem[] = [];
    for (let position = 1; position <= 300; position++) {
      events.push(item(here, position, "word ".repeat(100)));
      state = show(state, position, events).next;
    }
    expect(state.marks.length).toBeLessThan(60);
  });

  it("knows by which calls something was said in a room that is open", () => {
    const sent = (id: string, roomId: string) =>
      functionResult(id, element("message", { ...item(here, 1).element.attributes, roomId, sent: true }, "hi"));
    const said = saidIn(
      [sent("fc1", here), sent("fc2", "!closed:test"), functionResult("fc3", "done")],
      new Set([here]),
    );
    expect([...said]).toEqual(["fc1"]);
  });
});
