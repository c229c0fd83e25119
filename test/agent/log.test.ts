import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { advance } from "../../src/agent/log.ts";
import type { LogPiece } from "../../src/context/types.ts";
import type { StoredEvent } from "../../src/database/events.ts";
import type { LogState } from "../../src/database/steps.ts";
import type { EventId, RoomId, UserId } from "../../src/lib/ids.ts";

const here = "!here:test" as RoomId;
const [second, third] = ["!a:test" as RoomId, "!z:test" as RoomId];
const empty: LogState = { from: {}, marks: [] };

const event = (roomId: RoomId, position: number, body = "hello"): StoredEvent => ({
  seq: position,
  eventId: `$${position}` as EventId,
  roomId,
  type: "m.room.message",
  stateKey: null,
  sender: "@ann:test" as UserId,
  sentAt: new Date(position * 1_000),
  content: { msgtype: "m.text", body },
  replaces: null,
  redacts: null,
  position,
  source: "push",
  editedAt: null,
  media: null,
});

const show = (state: LogState, turnId: number, events: readonly StoredEvent[], fresh: readonly number[] = []) => {
  const { pieces, next } = advance(state, events, {
    turnId,
    here,
    serverName: "test",
    charsMax: 50_000,
    fresh: new Set(fresh.map((position) => `$${position}` as EventId)),
    eventsPerRoom: 200,
  });
  return { pieces, next, ids: idsOf(pieces) };
};
const idsOf = (pieces: readonly LogPiece[]): string[] =>
  pieces.flatMap(({ entries }) => entries.map(({ eventId }) => eventId));

describe("the log of a conversation", () => {
  it("shows at first what there is, the conversation's own room last", () => {
    const { pieces } = show(empty, 1, [event(here, 1), event(second, 2), event(third, 3)]);
    expect(pieces.map(({ roomId }) => roomId)).toEqual([second, third, here]);
  });

  it("leaves to the next turn what is new in this one", () => {
    const first = show(empty, 1, [event(here, 1), event(here, 2)], [2]);
    expect(first.ids).toEqual(["$1"]);
    expect(show(first.next, 2, [event(here, 1), event(here, 2), event(here, 3)], [3]).ids).toEqual(["$1", "$2"]);
  });

  it("begins as it did before, whichever rooms go on, for as long as it is not cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(fc.constantFrom(here, second, third), { maxLength: 4 }), { maxLength: 12 }),
        (turns) => {
          let [state, position] = [empty, 0];
          const events: StoredEvent[] = [];
          let before: string[] = [];
          for (const [turn, rooms] of turns.entries()) {
            const news = rooms.map((roomId) => event(roomId, ++position));
            events.push(...news);
            const fresh = news.filter(({ roomId }) => roomId === here).map((each) => each.position);
            const { ids, next } = show(state, turn, events, fresh);
            expect(ids.slice(0, before.length)).toEqual(before);
            [state, before] = [next, ids];
          }
          expect(show(state, turns.length, events).ids.toSorted()).toEqual(
            events.map(({ eventId }) => eventId).toSorted(),
          );
        },
      ),
      { numRuns: 200 },
    );
  });

  it("shows the same again to a further step of the turn", () => {
    const first = show(empty, 1, [event(here, 1), event(here, 2)], [2]);
    const again = show(first.next, 1, [event(here, 1), event(here, 2), event(here, 3)], [2, 3]);
    expect(again.ids).toEqual(["$1"]);
    expect(again.next.marks).toHaveLength(1);
  });

  it("is cut to the newer half at once when it has outgrown its share, and not again before it has again", () => {
    const long = "word ".repeat(100);
    let state = empty;
    const events: StoredEvent[] = [];
    const sizes: number[] = [];
    for (let position = 1; position <= 120; position++) {
      events.push(event(here, position, long));
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

  it("forgets the marks of what it does not show any more", () => {
    let state = empty;
    const events: StoredEvent[] = [];
    for (let position = 1; position <= 300; position++) {
      events.push(event(here, position, "word ".repeat(100)));
      state = show(state, position, events).next;
    }
    expect(state.marks.length).toBeLessThan(60);
  });
});
