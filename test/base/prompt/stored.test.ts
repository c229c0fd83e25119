import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Element, element } from "../../../src/base/lmml/element.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { functionCall, functionResult, thought } from "../../../src/base/prompt/ephemeris.ts";
import { fromStored, toStored } from "../../../src/base/prompt/stored.ts";
import { textOf } from "../../support/elements.ts";
import { hostileText } from "../../support/hostile-text.ts";

const at = new Date(0);
const many = "<".repeat(300_000);

describe("an element that is kept", () => {
  test("is read again as it was", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const stored = toStored(thought(at, text));
        expect(toStored(fromStored(stored))).toBe(stored);
      }),
    );
  });

  test.each<[string, Element]>([
    ["a thought", thought(at, many)],
    ["a thought of letters alone", thought(at, "y".repeat(1_100_000))],
    ["a call with a long parameter", functionCall("fc1.1", "SendMessage", { content: many, roomId: "!a" })],
    [
      "a call with many parameters",
      functionCall("fc1.1", "f", Object.fromEntries([...many].map((_, n) => [`p${n}`, "x"]))),
    ],
    ["a result", functionResult("fc1.1", many)],
    ["a result of elements", functionResult("fc1.1", element("searchResult", { path: "a", score: "1.0" }, many))],
  ])("is cut where it is too long, and says so: %s", (_, whole) => {
    const stored = toStored(whole);
    expect(stored.length).toBeLessThanOrEqual(200_000);
    const read = parse(stored);
    expect([read.name, read.attributes.truncated]).toEqual([whole.name, true]);
  });

  test("is replaced where not even its attributes fit", () => {
    const read = parse(toStored(functionCall("fc1.1", "f".repeat(1_100_000), {})));
    expect(textOf(read)).toMatch(/too long to be kept: 11\d{5} characters/);
  });
});

test.each([
  ["too long", `<thought timestamp="1970-01-01T00:00:00Z">${"y".repeat(1_100_000)}</thought>`],
  ["no LMML", "<thought>"],
  ["empty", ""],
  ["not what this version can read", '<thought timestamp="a">one & two</thought>'],
])("a row that cannot be read is shown as a stub: %s", (_, row) => {
  const stub = fromStored(row);
  expect(stub.name).toBe("systemEvent");
  expect(textOf(stub)).toContain(`cannot be read any more: ${row.length} characters`);
  expect(fromStored(toStored(stub))).toEqual(stub);
});
