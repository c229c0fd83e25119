import { expect, it } from "vitest";
import { lengthText } from "../../../src/base/lib/length-text.ts";

it.each([
  [0, "0 seconds"],
  [1, "1 second"],
  [59.9, "59 seconds"],
  [60, "1 minute"],
  [600, "10 minutes"],
  [3_599, "59 minutes"],
  [3_600, "1 hour"],
  [86_399, "23 hours"],
  [172_800, "2 days"],
])("%d seconds are %s", (seconds, text) => {
  expect(lengthText(seconds)).toBe(text);
});
