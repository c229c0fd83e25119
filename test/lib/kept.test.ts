import { describe, expect, it } from "vitest";
import { Kept } from "../../src/lib/kept.ts";

describe("values that are kept", () => {
  it("give way to others, those first that were used longest ago", () => {
    const kept = new Kept<string, number>(3);
    for (const [value, key] of ["a", "b", "c"].entries()) kept.keep(key, value, 1);
    kept.get("a");
    kept.keep("d", 3, 1);
    expect(["a", "b", "c", "d"].map((key) => kept.get(key))).toEqual([0, undefined, 2, 3]);
  });

  it("are as large together as they may be, whatever takes the place of what", () => {
    const kept = new Kept<string, number>(10);
    for (let n = 0; n < 20; n += 1) kept.keep("a", n, 6);
    kept.keep("b", 1, 4);
    expect([kept.get("a"), kept.get("b")]).toEqual([19, 1]);
    kept.keep("b", 2, 5);
    expect([kept.get("a"), kept.get("b")]).toEqual([undefined, 2]);
  });

  it("leave a value out that is larger than all may be, and what stood in its place", () => {
    const kept = new Kept<string, number>(10);
    kept.keep("a", 1, 5);
    kept.keep("b", 1, 5);
    expect(kept.keep("a", 2, 11)).toBe(2);
    expect([kept.get("a"), kept.get("b")]).toEqual([undefined, 1]);
  });
});
