import fc from "fast-check";
import { expect, test } from "vitest";
import { type Element, element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { functionResult } from "../../../src/base/prompt/ephemeris.ts";
import { listPart } from "../../../src/base/prompt/list-part.ts";
import { sizeAt } from "../../../src/base/prompt/measure.ts";
import { hostileText } from "../../support/hostile-text.ts";

const says = (text: string): Element => element("thought", { timestamp: "t" }, text);
const options = { depth: 3, limit: 100_000, keep: "last" } as const;
const texts = (elements: readonly Element[]) => elements.map(({ children }) => children);

test("given what it wants a list is whole", () => {
  fc.assert(
    fc.property(fc.array(hostileText), (lines) => {
      const elements = lines.map(says);
      const part = listPart(elements, options);
      expect(part.cut(part.wanted)).toEqual({ elements, reach: elements.length, leftOut: 0 });
    }),
  );
});

test("a list never takes more than it is given", () => {
  const times = fc.constantFrom(1, 20);
  fc.assert(
    fc.property(fc.array(hostileText), times, fc.nat(5_000), fc.nat(3), (lines, count, max, spared) => {
      const { elements } = listPart(
        lines.map((line) => says(line.repeat(count))),
        { ...options, spared, isCutInMiddle: spared > 1 },
      ).cut(max);
      expect(elements.reduce((sum, shown) => sum + sizeAt(shown, options.depth), 0)).toBeLessThanOrEqual(max);
    }),
  );
});

test("the long ones are cut before any is left out", () => {
  const { elements, leftOut } = listPart([says("short"), says("x".repeat(9_000)), says("end")], options).cut(2_000);
  expect(leftOut).toBe(0);
  expect(texts(elements)).toEqual(["short", expect.stringMatching(/^x{1500,}…$/), "end"]);
  expect(elements.map(({ attributes }) => attributes.truncated)).toEqual([undefined, true, undefined]);
});

test("keep: last leaves out the oldest, in the order of time", () => {
  const elements = Array.from({ length: 1_000 }, (_, n) => says(`${n} ${"x".repeat(50)}`));
  const shown = listPart(elements, options).cut(1_000);
  expect(shown.elements).toEqual(elements.slice(-shown.reach));
  expect(shown.reach).toBeGreaterThan(5);
  expect(shown.leftOut).toBe(1_000 - shown.reach);
});

test("keep: first leaves out the last", () => {
  const elements = Array.from({ length: 1_000 }, (_, n) => says(`${n}`));
  const shown = listPart(elements, { ...options, keep: "first" }).cut(1_000);
  expect(shown.elements).toEqual(elements.slice(0, shown.reach));
});

test("a call is cut in its longest parameter and stays a call", () => {
  const call = element("functionCall", { id: "fc1", function: "Say_x" }, [
    element("parameter", { name: "roomId" }, "!room:example.org"),
    element("parameter", { name: "content" }, "y".repeat(70_000)),
  ]);
  const [shown] = listPart([call], options).cut(2_000).elements;
  expect(shown).toMatchObject({
    name: "functionCall",
    attributes: { id: "fc1", truncated: true },
    children: [
      { attributes: { name: "roomId" }, children: "!room:example.org" },
      { attributes: { name: "content", truncated: true }, children: expect.stringMatching(/^y{1400,}…$/) },
    ],
  });
});

test("results of tools keep their beginning and their end, and the newest are cut last", () => {
  const result = (id: string) =>
    functionResult(
      id,
      element("command", {}, [element("stdout", {}, `BEGIN ${"x".repeat(9_000)} END`), element("stderr", {}, "err")]),
    );
  const part = (count: number, max: number) => {
    const results = Array.from({ length: count }, (_, n) => result(`fc${n}`));
    const { elements } = listPart(results, { ...options, spared: 1 }).cut(max);
    return elements.map((shown) => ({ truncated: shown.attributes.truncated, text: render(shown) }));
  };
  const shown = part(9, 16_000);
  expect(shown.map(({ truncated }) => truncated ?? false)).toEqual([...Array(8).fill(true), false]);
  for (const { text } of [...shown, ...part(1, 2_000)])
    expect(text).toMatch(/<stdout[^>]*>BEGIN x+(\n\[…\]\n)?x+ END<\/stdout>\s+<stderr>err</);
});

test("a list that is given nothing shows nothing", () => {
  expect(listPart([says("a"), says("b")], options).cut(0)).toEqual({ elements: [], reach: 0, leftOut: 2 });
});

test("a tag that alone is too long is left out and counted", () => {
  const long = element("thought", { timestamp: "t".repeat(5_000) }, "a");
  expect(listPart([says("a"), long], options).cut(2_000)).toEqual({ elements: [says("a")], reach: 2, leftOut: 1 });
});
