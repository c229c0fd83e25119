import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { sizeAt } from "../../../src/base/prompt/measure.ts";
import { type NewsItem, newsPart } from "../../../src/base/prompt/news-part.ts";
import { hostileText } from "../../support/hostile-text.ts";

const options = { depth: 4, limit: 100_000 };
const item = (text: string, n: number, isKnown = false): NewsItem => ({
  eventId: `$${n}` as EventId,
  element: element("message", { id: n }, text),
  isKnown,
});
const ids = ({ elements }: { readonly elements: readonly NewsItem["element"][] }) =>
  elements.map(({ attributes }) => attributes.id);
const anyItems = fc
  .array(fc.tuple(hostileText, fc.constantFrom(1, 20), fc.boolean()))
  .map((all) => all.map(([text, times, isKnown], n) => item(text.repeat(times), n, isKnown)));

test("given what they want new events are whole, and none waits", () => {
  fc.assert(
    fc.property(anyItems, (items) => {
      const part = newsPart(items, options);
      const { elements, waiting } = part.cut(part.wanted);
      expect(elements).toEqual(items.map((one) => one.element));
      expect(waiting).toEqual([]);
    }),
  );
});

test("new events never take more than they are given", () => {
  fc.assert(
    fc.property(anyItems, fc.nat(5_000), (items, max) => {
      const { elements } = newsPart(items, options).cut(max);
      expect(elements.reduce((sum, shown) => sum + sizeAt(shown, options.depth), 0)).toBeLessThanOrEqual(max);
    }),
  );
});

test("look after look shows each of them once, the oldest first", () => {
  fc.assert(
    fc.property(anyItems, fc.integer({ min: 300, max: 5_000 }), (items, max) => {
      const dealtWith = new Set<EventId>(items.flatMap(({ isKnown, eventId }) => (isKnown ? [eventId] : [])));
      const expected = items.flatMap(({ isKnown, eventId }) => (isKnown ? [] : [eventId]));
      const shown: EventId[] = [];
      for (let waiting = expected; waiting.length > 0; ) {
        const cut = newsPart(
          items.map((one) => ({ ...one, isKnown: dealtWith.has(one.eventId) })),
          options,
        ).cut(max);
        const now = waiting.filter((eventId) => !cut.waiting.includes(eventId));
        expect(now.length).toBeGreaterThan(0);
        for (const eventId of now) dealtWith.add(eventId);
        shown.push(...now);
        waiting = waiting.filter((eventId) => cut.waiting.includes(eventId));
      }
      expect(shown).toEqual(expected);
    }),
  );
});

test("one that is too long waits until it is the oldest, and is cut then", () => {
  const items = [item("short", 0), item("x".repeat(9_000), 1), item("end", 2)];
  const first = newsPart(items, options).cut(2_000);
  expect([ids(first), first.waiting]).toEqual([[0], ["$1", "$2"]]);
  const second = newsPart(
    items.map((one, n) => ({ ...one, isKnown: n === 0 })),
    options,
  ).cut(2_000);
  expect([ids(second), second.waiting]).toEqual([[1], ["$2"]]);
  expect(second.elements[0]?.attributes.truncated).toBe(true);
});

test("those that are known fill what is left, the newest first, in the order of time", () => {
  const items = [0, 1, 2].map((n) => item("x".repeat(500), n, true));
  expect(ids(newsPart([...items, item("new", 3)], options).cut(1_400))).toEqual([1, 2, 3]);
});
