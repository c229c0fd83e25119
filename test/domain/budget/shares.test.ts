import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatMessage, ToolDefinition } from "../../../src/adapters/model/types.ts";
import { ShareMeter } from "../../../src/domain/budget/shares.ts";

const look = { name: "Look", description: "", parameters: {} };
/** 400 characters. */
const tools: readonly ToolDefinition[] = [{ ...look, description: "x".repeat(400 - JSON.stringify([look]).length) }];
const system: ChatMessage = { role: "system", content: "s".repeat(800) };
const user: ChatMessage = { role: "user", content: "u".repeat(400) };
const answer: ChatMessage = { role: "assistant", content: "", toolCalls: [{ id: "1", name: "Look", arguments: "{}" }] };
const result: ChatMessage = { role: "tool", toolCallId: "1", content: "r".repeat(54) };

describe("the shares of messages in the tokens of a prompt", () => {
  it("are by length where nothing was counted before", () => {
    expect(new ShareMeter().measure({ tools, messages: [system, user] }, 800)).toEqual([
      { role: "tools", tokens: 200 },
      { role: "system", tokens: 400 },
      { role: "user", tokens: 200 },
    ]);
  });

  it("are, of what is new, what those that were counted before leave of the prompt", () => {
    const meter = new ShareMeter();
    const before = meter.measure({ tools, messages: [system, user] }, 800);
    expect(meter.measure({ tools, messages: [system, user, answer, result] }, 900)).toEqual([
      ...before,
      { role: "assistant", tokens: 10 },
      { role: "tool", tokens: 90 },
    ]);
  });

  it("are by length again where the provider counts less than before", () => {
    const meter = new ShareMeter();
    meter.measure({ tools: [], messages: [system, user] }, 1200);
    const shares = meter.measure({ tools: [], messages: [system, user, result] }, 1254);
    expect(shares.at(-1)).toEqual({ role: "tool", tokens: 54 });
    expect(meter.measure({ tools: [], messages: [system, user] }, 300)).toEqual([
      { role: "system", tokens: 200 },
      { role: "user", tokens: 100 },
    ]);
  });

  it("count an image as one, whatever its size", () => {
    const shown = { label: "a", contentType: "image/png", base64: "x".repeat(100_000) };
    const seen: ChatMessage = { role: "user", content: "u".repeat(6_000), images: [shown] };
    const shares = new ShareMeter().measure({ tools: [], messages: [{ ...seen, images: [] }, seen] }, 4_500);
    expect(shares.map(({ tokens }) => tokens)).toEqual([1_500, 3_000]);
  });

  it("are equal where nothing of what is new has a length", () => {
    const empty = (): ChatMessage => ({ role: "user", content: "" });
    const shares = new ShareMeter().measure({ tools: [], messages: [empty(), empty()] }, 4);
    expect(shares.map(({ tokens }) => tokens)).toEqual([2, 2]);
  });

  it("are together what the provider has counted, and never below zero", () => {
    const lengths = fc.array(fc.nat(5_000), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(lengths, fc.array(fc.nat(100_000), { minLength: 1, maxLength: 5 }), (sizes, counts) => {
        const meter = new ShareMeter();
        const messages: ChatMessage[] = [];
        for (const count of counts) {
          messages.push(...sizes.map((size) => ({ role: "user", content: "x".repeat(size) }) as const));
          const shares = meter.measure({ tools, messages }, count).map(({ tokens }) => tokens);
          expect(shares.reduce((sum, tokens) => sum + tokens, 0)).toBe(count);
          expect(Math.min(...shares)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});
