import fc from "fast-check";
import { expect, test } from "vitest";
import { share } from "../../../src/base/prompt/share.ts";

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

test("nobody gets more than is wanted, all together not more than there is, and hardly anything is left over", () => {
  const wants = fc.array(fc.record({ want: fc.nat(10_000), weight: fc.integer({ min: 1, max: 11 }) }), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(fc.nat(50_000), wants, (total, wanted) => {
      const given = share(
        wanted.map(({ want }) => want),
        total,
        wanted.map(({ weight }) => weight),
      );
      for (const [index, { want }] of wanted.entries()) {
        expect(given[index]).toBeLessThanOrEqual(want);
        expect(given[index]).toBeGreaterThanOrEqual(0);
      }
      const most = Math.min(total, sum(wanted.map(({ want }) => want)));
      expect(sum(given)).toBeLessThanOrEqual(total);
      expect(sum(given)).toBeGreaterThanOrEqual(most - wanted.length);
    }),
  );
});

test("those who want more than there is get it by their weights", () => {
  expect(share([1_000, 1_000, 1_000], 600, [1, 2, 3])).toEqual([100, 200, 300]);
});

test("what one does not need goes to the others", () => {
  expect(share([50, 1_000, 1_000], 650)).toEqual([50, 300, 300]);
});
