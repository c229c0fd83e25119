import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { lineCount, lineStarts } from "../../../src/base/lib/lines.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { clamp, elementContent, heightMax, partialContent, textContent } from "../../../src/base/prompt/viewport.ts";
import { hostileText } from "../../support/hostile-text.ts";

/** Texts with every kind of line end, among other things. */
const text = fc.oneof(
  hostileText,
  fc
    .array(fc.constantFrom("a", "word", "\n", "\r\n", "\r", "\n\n", "🙂", ""), { maxLength: 60 })
    .map((parts) => parts.join("")),
);
/** Splits into lines as `lineStarts` does, in another way. */
const linesOf = (whole: string): string[] => whole.match(/[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$/g) ?? [];
const viewport = fc.record({ top: fc.integer({ min: -50, max: 100 }), height: fc.integer({ min: -5, max: 40 }) });

describe("lines", () => {
  test.each([
    ["", 0],
    ["one", 1],
    ["one\n", 1],
    ["one\ntwo", 2],
    ["one\r\ntwo\r\n", 2],
    ["\n", 1],
    ["\n\n", 2],
    ["one\rtwo\r", 2],
    ["one\n\rthree", 3],
    ["one\r\n\r\nthree", 3],
  ])("%j has %i", (whole, lines) => expect(lineCount(whole)).toBe(lines));

  test("begin where the ends of others are, whatever the line ends", () => {
    fc.assert(
      fc.property(text, (whole) => {
        let at = 0;
        const starts = linesOf(whole).map((line) => {
          at += line.length;
          return at - line.length;
        });
        expect(lineStarts(whole)).toEqual(starts);
      }),
    );
  });

  test("of ten megabytes are found in a blink", () => {
    const tenMegabytes = "x".repeat(99).concat("\n").repeat(100_000);
    // Not slower either when it was done often enough to be optimized.
    for (let time = 0; time < 10; time += 1) expect(lineCount(tenMegabytes)).toBe(100_000);
  });
});

describe("a text of which the beginning is at hand", () => {
  test("shows what all of it would show, or nothing", () => {
    fc.assert(
      fc.property(text, fc.nat(80), viewport, fc.integer({ min: 1, max: 40 }), (whole, at, view, limit) => {
        const all = textContent(whole);
        const part = partialContent(whole.slice(0, at), all, view, limit);
        if (part) expect(part.excerpt(view, limit)).toEqual(all.excerpt(view, limit));
      }),
    );
  });

  test("is enough for the first lines of a long one", () => {
    const whole = { lines: 1_000, chars: 50_000 };
    const part = partialContent("one\ntwo\nthree\nfo", whole, { top: 1, height: 3 }, 8_000);
    expect(part).toMatchObject(whole);
    expect(part?.excerpt({ top: 1, height: 3 }, 8_000)).toMatchObject({ shown: "one\ntwo\nthree\n", bottom: 3 });
  });
});

describe("a viewport", () => {
  test("always shows lines that are there, and as many as it can", () => {
    fc.assert(
      fc.property(viewport, fc.nat(200), (wanted, lines) => {
        const { top, height } = clamp(wanted, lines);
        expect(top).toBeGreaterThanOrEqual(1);
        expect(height).toBeGreaterThanOrEqual(1);
        expect(height).toBeLessThanOrEqual(heightMax);
        if (lines > 0) expect(top).toBeLessThanOrEqual(lines);
        expect(top === 1 || top + height - 1 <= lines).toBe(true);
        expect(clamp({ top, height }, lines)).toEqual({ top, height });
      }),
    );
  });

  test("shows exactly its lines with their ends", () => {
    fc.assert(
      fc.property(text, viewport, (whole, view) => {
        const content = textContent(whole);
        const lines = linesOf(whole);
        const { top, height } = clamp(view, lines.length);
        const { shown, isTruncated, ...seen } = content.excerpt(view, 1_000_000);
        expect(shown).toBe(lines.slice(top - 1, top - 1 + height).join(""));
        expect(isTruncated).toBe(false);
        expect(seen).toEqual(
          lines.length === 0 ? { top: 0, bottom: 0 } : { top, bottom: Math.min(lines.length, top + height - 1) },
        );
        expect(content).toMatchObject({ lines: lines.length, chars: whole.length });
      }),
    );
  });

  test("that is limited shows whole lines, or the beginning of a long one, never more than the limit, and says so", () => {
    fc.assert(
      fc.property(text, viewport, fc.integer({ min: 1, max: 40 }), (whole, view, limit) => {
        const free = textContent(whole).excerpt(view, 1_000_000);
        const { shown, top, bottom, isTruncated } = textContent(whole).excerpt(view, limit);
        expect(shown.length).toBeLessThanOrEqual(limit);
        expect(free.shown.slice(0, shown.length)).toBe(shown);
        expect(isTruncated).toBe(shown !== free.shown);
        expect(top).toBe(free.top);
        if (top === 0) return;
        const lines = linesOf(whole)
          .slice(top - 1, bottom)
          .join("");
        // Of a character that is two halves, none is shown alone.
        if (top < bottom) expect(shown).toBe(lines);
        else expect(lines.startsWith(shown as string)).toBe(true);
        const next = linesOf(whole)[bottom] ?? "";
        if (isTruncated && shown === lines) expect(lines.length + next.length).toBeGreaterThan(limit);
        expect((shown as string).isWellFormed() || !whole.isWellFormed()).toBe(true);
      }),
    );
  });

  test("of elements shows each as a line, and one at least, however long it is", () => {
    const elements = ["short", "x".repeat(100), "end"].map((word) => element("match", { line: 1 }, word));
    const content = elementContent(elements);
    expect(content).toMatchObject({ lines: 3, chars: 108 });
    expect(content.excerpt({ top: 1, height: 20 }, 50)).toEqual({
      shown: elements.slice(0, 1),
      top: 1,
      bottom: 1,
      isTruncated: true,
    });
    expect(content.excerpt({ top: 2, height: 1 }, 50)).toMatchObject({
      shown: elements.slice(1, 2),
      isTruncated: false,
    });
    expect(elementContent([]).excerpt({ top: 1, height: 20 }, 50)).toEqual({
      shown: [],
      top: 0,
      bottom: 0,
      isTruncated: false,
    });
  });
});
