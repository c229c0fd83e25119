import fc from "fast-check";
import { expect, test } from "vitest";
import { type Allotment, divide, nothing } from "../../src/context/budget.ts";

const wants = (some: Partial<Allotment>): Allotment => ({ ...nothing, ...some });
const sum = (allotment: Allotment) => Object.values(allotment).reduce((total, chars) => total + chars, 0);
const anyWants = fc.record(
  Object.fromEntries(Object.keys(nothing).map((part) => [part, fc.nat(100_000)])),
) as fc.Arbitrary<Allotment>;

test("all is given if it is wanted, never more than there is, and to no part more than it wants", () => {
  fc.assert(
    fc.property(fc.nat(100_000), anyWants, (total, wanted) => {
      const given = divide(total, wanted);
      expect(sum(given)).toBe(Math.min(total, sum(wanted)));
      for (const part of Object.keys(nothing) as (keyof Allotment)[]) {
        expect(given[part]).toBeLessThanOrEqual(wanted[part]);
        expect(given[part]).toBeGreaterThanOrEqual(0);
      }
    }),
  );
});

test("the shares make up the whole, or nearly", () => {
  const everything = divide(10_000, wants(divide(Number.MAX_SAFE_INTEGER, { ...nothing })));
  expect(sum(everything)).toBe(0);
  const greedy = Object.fromEntries(Object.keys(nothing).map((part) => [part, 1e9])) as unknown as Allotment;
  expect(divide(10_000, greedy).scratchpad).toBe(200);
});

test("what is not needed goes to the first that wants more", () => {
  const given = divide(10_000, wants({ newEvents: 5_000, history: 50_000, scratchpad: 50_000 }));
  expect(given).toEqual(wants({ newEvents: 5_000, history: 4_800, scratchpad: 200 }));
});

test("no part, however greedy, takes the share of one behind it", () => {
  const given = divide(10_000, wants({ turn: 1_000_000, history: 800, ephemeris: 1_000 }));
  expect(given).toMatchObject({ history: 800, ephemeris: 200 });
});
