import { describe, expect, it } from "vitest";
import { wereSentInOrder } from "./sending-order.ts";

const row = (key: string, turn: number | null, second: number) => ({ key, turn, createdAt: new Date(second * 1_000) });

describe("the check of what was sent", () => {
  const rows = [row("a", 1, 0), row("b", 1, 0.1), row("notice", null, 0.2), row("c", 2, 5)];

  it("accepts the order of the rows", () => {
    expect(wereSentInOrder(rows, ["a", "b", "notice", "c"])).toBe(true);
  });

  it("accepts that what two had to say at the same moment changed places", () => {
    expect(wereSentInOrder(rows, ["a", "notice", "b", "c"])).toBe(true);
  });

  it("rejects that what one turn says changed places", () => {
    expect(wereSentInOrder(rows, ["b", "a", "notice", "c"])).toBe(false);
  });

  it("rejects that what was said later stands before", () => {
    expect(wereSentInOrder(rows, ["a", "b", "c", "notice"])).toBe(false);
  });

  it("rejects what is missing, too much, or there twice", () => {
    expect(wereSentInOrder(rows, ["a", "b", "notice"])).toBe(false);
    expect(wereSentInOrder(rows, ["a", "b", "notice", "c", "c"])).toBe(false);
    expect(wereSentInOrder(rows, ["a", "b", "notice", "c", "unknown"])).toBe(false);
    expect(wereSentInOrder(rows, ["a", "b", "notice", "notice"])).toBe(false);
  });
});
