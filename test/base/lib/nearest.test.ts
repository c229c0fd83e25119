import { expect, it } from "vitest";
import { nearest, shortenTyped } from "../../../src/base/lib/nearest.ts";

const names = Array.from({ length: 100 }, (_, n) => `command number ${n}`);

it.each([
  ["wrtie", "write"],
  ["WRITE", "write"],
  ["write ", "write"],
  ["nothing", undefined],
  ["", undefined],
])("for %j the nearest is %s", (typed, meant) => {
  expect(nearest(typed, ["write", "read", "todo add"])).toBe(meant);
});

it("a message of 64 KB is as soon compared as a word", () => {
  const began = performance.now();
  for (let n = 0; n < 20; n++) expect(nearest("x".repeat(64_000), names)).toBeUndefined();
  expect(performance.now() - began).toBeLessThan(500);
});

it("a message of 64 KB is not repeated whole", () => {
  expect(shortenTyped("wrtie")).toBe("wrtie");
  expect(shortenTyped(`${"x".repeat(63)}\u{1F600}${"x".repeat(64_000)}`)).toBe(`${"x".repeat(63)}\uFFFD…`);
});
