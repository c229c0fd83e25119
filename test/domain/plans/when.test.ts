import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { nextTime, splitTime, timeAt } from "../../../src/domain/plans/when.ts";

const now = new Date("2026-11-21T18:00:30Z");
const next = (cron: string, timeZone = "UTC", after = now) => nextTime(cron, timeZone, after).toISOString();

describe("a cron expression", () => {
  it.each([
    ["* * * * *", "UTC", "2026-11-21T18:01:00.000Z"],
    ["0 9 * * *", "Europe/Berlin", "2026-11-22T08:00:00.000Z"],
    ["0 9 * * 1-5", "America/New_York", "2026-11-23T14:00:00.000Z"],
    ["0 9 * * mon", "Asia/Kolkata", "2026-11-23T03:30:00.000Z"],
    ["0 0 29 2 *", "UTC", "2028-02-29T00:00:00.000Z"],
    ["0 9 L * *", "UTC", "2026-11-30T09:00:00.000Z"],
    // Either day, as cron has it.
    ["0 0 13 * 5", "UTC", "2026-11-27T00:00:00.000Z"],
  ])("%s in %s is due next at %s", (cron, timeZone, time) => expect(next(cron, timeZone)).toBe(time));

  it("is due after the hour that a change of clocks leaves out", () => {
    expect(next("30 2 * * *", "Europe/Berlin", new Date("2026-03-28T12:00:00Z"))).toBe("2026-03-29T01:30:00.000Z");
  });

  it("is due once in the hour that comes twice", () => {
    const first = next("30 2 * * *", "Europe/Berlin", new Date("2026-10-24T12:00:00Z"));
    expect(first).toBe("2026-10-25T00:30:00.000Z");
    expect(next("30 2 * * *", "Europe/Berlin", new Date(first))).toBe("2026-10-26T01:30:00.000Z");
  });

  it.each(["", "hello", "61 * * * *", "* * * *", "0 0 30 2 *", "0 9 * * monday", "0/0 * * * *"])(
    "%j is none, and the error says how one is written",
    (cron) => expect(() => next(cron)).toThrow(/^cron: .*Write five fields/s),
  );

  it.each([
    ["61 * * * *", "the minute 61 is not between 0 and 59"],
    ["0 25 * * *", "the hour 25 is not between 0 and 23"],
    ["0 9 0 13 *", "the day of month 0 is not between 1 and 31; the month 13 is not between 1 and 12"],
    ["0 9 * * 1-8", "the day of week 8 is not between 0 and 7"],
    ["0 9 * * monday", '"monday" is no day of week: write one of sun, mon,'],
    ["*/0 * * * *", "the minute cannot come every 0"],
    ["0 0 30 2 *", "month 2 has no day 30"],
    ["0 9 * *", "it has no five fields, but 4"],
  ])("%s says what is wrong with it", (cron, why) => expect(() => next(cron)).toThrow(`cron: ${why}`));

  it("has no seconds: nothing is due more often than once a minute", () => {
    expect(() => next("* * * * * *")).toThrow("it has no five fields");
    expect(() => next("@daily")).toThrow("it has no five fields");
  });

  it("is due later than it was, or is an error that people understand", () => {
    const field = fc.stringMatching(/^[0-9*/,\-?LW#]{1,4}$|^(mon|fri|jan|dec)$/);
    fc.assert(
      fc.property(fc.tuple(field, field, field, field, field), (fields) => {
        try {
          expect(nextTime(fields.join(" "), "Europe/Berlin", now).getTime()).toBeGreaterThan(now.getTime());
        } catch (error) {
          expect(error).toBeInstanceOf(UserError);
        }
      }),
    );
  });
});

describe("a time", () => {
  it.each([
    ["2026-11-22T09:00", "2026-11-22T08:00:00.000Z"],
    ["2026-11-22T09:00Z", "2026-11-22T09:00:00.000Z"],
    ["2026-11-22T09:00:30+05:30", "2026-11-22T03:30:30.000Z"],
    ["2026-11-22", "2026-11-21T23:00:00.000Z"],
    ["2027-07-01T12:00", "2027-07-01T10:00:00.000Z"],
  ])("%s in Berlin is %s", (at, time) => expect(timeAt(at, "Europe/Berlin", now).toISOString()).toBe(time));

  it.each(["tomorrow", "", "2026-13-01", "9 o'clock"])("%j is none, and the error says how one is written", (at) =>
    expect(() => timeAt(at, "UTC", now)).toThrow(/is no time. Write a date and time such as/),
  );

  it.each([
    ["2026-13-01", "There is no month 13."],
    ["2027-02-30T10:00", "2027-02 has no day 30."],
    ["2026-12-24T25:00", "There is no hour 25."],
    ["2026-12-24 18:61", "There is no minute 61."],
  ])("%s says which part of it is impossible", (at, why) =>
    expect(() => timeAt(at, "UTC", now)).toThrow(`at: ${why} "${at}" is no time.`),
  );

  it("may have a space before the hour", () => {
    expect(timeAt("2026-11-22 09:00", "Europe/Berlin", now).toISOString()).toBe("2026-11-22T08:00:00.000Z");
  });

  it("that is over is an error that says what time it is for the agent", () => {
    expect(() => timeAt("2026-11-21T19:00", "Europe/Berlin", now)).toThrow(
      "has passed. In the agent's time zone, Europe/Berlin, it is 2026-11-21 19:00:30 +0100.",
    );
  });
});

describe("a text that begins with a time", () => {
  it.each([
    ["0 9 * * 1-5 Good morning", { cron: "0 9 * * 1-5", text: "Good morning" }],
    ["*/5  * * * *\nlook", { cron: "*/5 * * * *", text: "look" }],
    ["2026-12-24T18:00 Merry Christmas", { at: "2026-12-24T18:00", text: "Merry Christmas" }],
    ["5 apples are in the basket now", { text: "5 apples are in the basket now" }],
    ["0 9 * * *", { cron: "0 9 * * *", text: "" }],
    ["61 * * * * look", { cron: "61 * * * *", text: "look" }],
    ["0 9 * * Good morning", { cron: "0 9 * *", text: "Good morning" }],
    ["0 9 * * 1-5 5 apples", { cron: "0 9 * * 1-5", text: "5 apples" }],
    ["2026-12-24 18:00 Merry Christmas", { at: "2026-12-24 18:00", text: "Merry Christmas" }],
    ["2026-12-24 18 guests come", { at: "2026-12-24", text: "18 guests come" }],
    ["5 6 7 numbers", { text: "5 6 7 numbers" }],
    ["* one\n* two", { text: "* one\n* two" }],
    ["hello", { text: "hello" }],
  ])("%s", (text, parts) => expect(splitTime(text)).toEqual(parts));
});
