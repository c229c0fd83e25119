import fc from "fast-check";
import { expect, test } from "vitest";
import { element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { beginning, clip, level, shorten, shortenMiddle, sizeAt } from "../../../src/base/prompt/measure.ts";
import { hostileText } from "../../support/hostile-text.ts";

const leaf = fc.record({ id: hostileText, text: hostileText }).map(({ id, text }) => element("x", { id }, text));
const tree = fc.oneof(
  leaf,
  fc
    .array(
      fc.oneof(
        leaf,
        fc.array(leaf, { maxLength: 3 }).map((inner) => element("y", {}, inner)),
      ),
      { maxLength: 3 },
    )
    .map((inner) => element("z", {}, inner)),
);

test("sizeAt is what an element adds to a render at its depth", () => {
  fc.assert(
    fc.property(tree, tree, (one, other) => {
      const at2 = (...elements: ReturnType<typeof element>[]) => render(element("a", {}, [element("b", {}, elements)]));
      expect(at2(one, other).length - at2(one).length).toBe(sizeAt(other, 2));
    }),
  );
});

test("shorten keeps to its maximum, ends in … and never splits a character", () => {
  const size = (text: string) => render(element("x", {}, text)).length;
  fc.assert(
    fc.property(hostileText, fc.nat(200), (piece, max) => {
      const text = piece.repeat(40);
      const shorter = shorten(text, max, size);
      if (shorter === "") return;
      expect(size(shorter)).toBeLessThanOrEqual(max);
      expect(text.startsWith(shorter.slice(0, -1))).toBe(true);
    }),
  );
  expect(shorten("👍👍👍", 4, (text) => text.length)).toBe("👍…");
});

test("shortenMiddle keeps to its maximum, keeps both ends and never splits a character", () => {
  const size = (text: string) => render(element("x", {}, text)).length;
  fc.assert(
    fc.property(hostileText, fc.nat(200), (piece, max) => {
      const text = piece.repeat(40);
      const shorter = shortenMiddle(text, max, size);
      if (shorter === "") return;
      expect(size(shorter)).toBeLessThanOrEqual(max);
      const [begin = "", ...rest] = shorter.split("\n[…]\n");
      expect([text.startsWith(begin), text.endsWith(rest.at(-1) ?? "")]).toEqual([true, true]);
    }),
  );
  expect(shortenMiddle("👍".repeat(9), 12, (text) => text.length)).toBe("👍👍\n[…]\n👍");
});

test("shorten makes ordinary text nearly as long as it may be", () => {
  expect(shorten("a < b, ".repeat(1_000), 2_000, (text) => text.replaceAll("<", "&lt;").length).length).toBeGreaterThan(
    1_300,
  );
  expect(shorten("abc", 3, (text) => text.length)).toBe("ab…");
});

test("beginning never splits a character", () => {
  expect(beginning("a👍", 2)).toBe("a");
  expect(beginning("a👍", 3)).toBe("a👍");
  expect(beginning("abc", 0)).toBe("");
});

test("clip leaves ordinary names alone and cuts by what they take in the markup", () => {
  expect(clip("@agent_helper:example.org")).toBe("@agent_helper:example.org");
  expect(clip("&".repeat(100), 50)).toMatch(/^&{4,9}…$/);
  fc.assert(
    fc.property(hostileText, fc.integer({ min: 30, max: 300 }), (piece, max) => {
      const shown = render(element("roomMember", { userId: clip(piece.repeat(20), max) }));
      expect(shown.length - '<roomMember userId="" />'.length).toBeLessThanOrEqual(max);
    }),
  );
});

test("level cuts the longest first", () => {
  expect(level([10, 100, 1_000], 210)).toBe(100);
  expect(level([10, 20], 30)).toBe(Number.POSITIVE_INFINITY);
  expect(level([10, 20], 29)).toBe(19);
  expect(level([], 0)).toBe(Number.POSITIVE_INFINITY);
});
