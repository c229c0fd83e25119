import { expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";

it("time that is measured only rises", async () => {
  const before = systemClock.monotonic();
  await systemClock.sleep(5);
  expect(systemClock.monotonic()).toBeGreaterThan(before);
});

it("now is the time of the wall clock", () => {
  expect(Math.abs(systemClock.now().getTime() - Date.now())).toBeLessThan(60_000);
});

it("a sleep that is aborted rejects with the signal's reason", async () => {
  const controller = new AbortController();
  const reason = new Error("enough");
  const slept = systemClock.sleep(3_600_000, controller.signal);
  controller.abort(reason);
  await expect(slept).rejects.toBe(reason);
});

it("a sleep does not begin when it is aborted already", async () => {
  const reason = new Error("enough");
  await expect(systemClock.sleep(3_600_000, AbortSignal.abort(reason))).rejects.toBe(reason);
});
