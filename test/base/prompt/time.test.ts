import { expect, test } from "vitest";
import { eventTime, localTime } from "../../../src/base/prompt/time.ts";

test("events are told in UTC to the second", () => {
  expect(eventTime(new Date("2024-12-25T12:00:00.987Z"))).toBe("2024-12-25T12:00:00Z");
});

test("a year beyond four digits, as a hostile server may send, is told too", () => {
  expect(eventTime(new Date(8.64e15))).toBe("+275760-09-13T00:00:00Z");
});

test.each([
  ["UTC", "2024-12-25 23:30:00 +0000"],
  ["America/Los_Angeles", "2024-12-25 15:30:00 -0800"],
  ["Asia/Kathmandu", "2024-12-26 05:15:00 +0545"],
  ["Europe/Berlin", "2024-12-26 00:30:00 +0100"],
])("the clock in %s shows %s", (zone, shown) => {
  expect(localTime(new Date("2024-12-25T23:30:00Z"), zone)).toBe(shown);
});

test("summer time has its own offset", () => {
  expect(localTime(new Date("2024-07-01T12:00:00Z"), "Europe/Berlin")).toBe("2024-07-01 14:00:00 +0200");
});
