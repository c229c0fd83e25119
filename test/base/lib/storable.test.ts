import fc from "fast-check";
import { expect, it } from "vitest";
import { toStorable } from "../../../src/base/lib/storable.ts";

it("NUL and halves of characters become U+FFFD", () => {
  expect(toStorable("a\0b\ud800c\udc00\ud83d\ude00")).toBe("a\uFFFDb\uFFFDc\uFFFD\ud83d\ude00");
});

it("whole characters stay as they are", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      fc.pre(!text.includes("\0"));
      expect(toStorable(text)).toBe(text);
    }),
  );
});
