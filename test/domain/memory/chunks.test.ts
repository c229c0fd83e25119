import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { chunksOf } from "../../../src/domain/memory/chunks.ts";

describe("the chunks of a text", () => {
  it("are the text itself up to 512 characters", () => {
    for (const length of [0, 1, 512]) expect(chunksOf("x".repeat(length))).toEqual(["x".repeat(length)]);
  });

  it("have 512 characters, and share 50 with the one before", () => {
    const text = Array.from({ length: 1_000 }, (_, n) => String.fromCodePoint(0x4e00 + n)).join("");
    const chunks = chunksOf(text);
    expect(chunks.map((chunk) => chunk.length)).toEqual([512, 512, 76]);
    expect(chunks[1]?.slice(0, 50)).toBe(chunks[0]?.slice(-50));
  });

  it("hold the whole text, and none is only a repetition", () =>
    fc.assert(
      fc.property(fc.string({ maxLength: 2_000 }), (text) => {
        const chunks = chunksOf(text);
        expect(chunks.map((chunk, index) => (index === 0 ? chunk : chunk.slice(50))).join("")).toBe(text);
        for (const chunk of chunks.slice(1)) expect(chunk.length).toBeGreaterThan(50);
      }),
    ));

  it("have no half of a character", () => {
    for (const chunk of chunksOf("🦊".repeat(700).slice(0, -1))) expect(chunk.isWellFormed()).toBe(true);
  });
});
