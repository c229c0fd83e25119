import fc from "fast-check";
import { expect, it } from "vitest";
import { PrefixMeter } from "../../../src/engine/turn/prefix-meter.ts";

const block = 128;
const text = fc.string({ maxLength: 1_000, size: "max" });

it("measures the whole blocks that two calls begin with, wherever the texts are cut", () => {
  fc.assert(
    fc.property(text, text, text, fc.nat(1_000), (same, first, second, cut) => {
      const meter = new PrefixMeter();
      meter.measure("a", [same, first]);
      const now = `${same}${second}`;
      const { promptChars, prefixChars } = meter.measure("a", [now.slice(0, cut), now.slice(cut)]);
      const before = `${same}${first}`;
      let common = 0;
      while (common < now.length && now[common] === before[common]) common += 1;
      expect(promptChars).toBe(now.length);
      expect(prefixChars).toBe(Math.floor(common / block) * block);
    }),
  );
});

it("knows nothing of another conversation", () => {
  const meter = new PrefixMeter();
  meter.measure("a", ["x".repeat(block)]);
  expect(meter.measure("b", ["x".repeat(block)])).toEqual({ promptChars: block, prefixChars: 0 });
});
