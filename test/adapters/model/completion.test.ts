import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Completion, CompletionBuilder } from "../../../src/adapters/model/completion.ts";
import { StreamError } from "../../../src/adapters/model/failure.ts";

const build = (deltas: object[], rest: { usage?: object } = {}, prompt = ""): Completion => {
  const builder = new CompletionBuilder();
  for (const delta of deltas) builder.add({ choices: [{ index: 0, delta, finish_reason: null }] });
  builder.add({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] });
  builder.add({ choices: [], ...rest });
  return builder.build(() => prompt);
};

const call = (index: number | undefined, id: string | undefined, name?: string, json?: string) => ({
  tool_calls: [{ index, id, function: { name, arguments: json } }],
});

describe("completion", () => {
  it("separates thoughts from text wherever the stream was cut into chunks", () => {
    const content = "<think>first, a thought</think>Hello, <think>second</think>world";
    const cuts = fc.uniqueArray(fc.integer({ min: 0, max: content.length }), { maxLength: 8 });
    fc.assert(
      fc.property(cuts, (unsorted) => {
        const borders = [0, ...unsorted.sort((a, b) => a - b), content.length];
        const deltas = borders.slice(1).map((border, i) => ({ content: content.slice(borders[i], border) }));
        const { text, thought } = build(deltas);
        expect({ text, thought }).toEqual({ text: "Hello, world", thought: "first, a thought\n\nsecond" });
      }),
    );
  });

  it("says nothing of its thoughts before it is whole", () => {
    const builder = new CompletionBuilder();
    const said = [..."<think>first, a thought</think>Hello, <think>second</think>world"].map((content) => {
      builder.add({ choices: [{ index: 0, delta: { content }, finish_reason: null }] });
      return builder.text;
    });
    const beginnings = Array.from("Hello, world", (_, index) => "Hello, world".slice(0, index + 1).trim());
    expect([...new Set(said)]).toEqual(["", ...new Set(beginnings)]);
    expect(builder.calls).toBe(false);
    builder.add({ choices: [{ index: 0, delta: call(0, "a", "React"), finish_reason: null }] });
    expect(builder.calls).toBe(true);
  });

  it.each([
    ["reasoning_content", [{ reasoning_content: "let me " }, { reasoning_content: "see" }, { content: "Hi" }]],
    ["reasoning", [{ reasoning: "let me " }, { reasoning: "see" }, { content: "Hi" }]],
    [
      "reasoning_details",
      [
        { reasoning_details: [{ type: "reasoning.text", text: "let me " }] },
        { reasoning_details: [{ summary: "see" }] },
        { content: "Hi" },
      ],
    ],
    [
      "reasoning beside reasoning_details, once",
      [
        { reasoning: "let me see", reasoning_details: [{ type: "reasoning.text", text: "let me see" }] },
        { content: "Hi" },
      ],
    ],
  ])("takes %s as thought", (_field, deltas) => {
    expect(build(deltas)).toMatchObject({ text: "Hi", thought: "let me see" });
  });

  it("puts calls in pieces together by index", () => {
    const { toolCalls } = build([
      call(0, "a", "Send", ""),
      call(1, "b", "React", ""),
      call(0, undefined, undefined, '{"x":'),
      call(1, undefined, undefined, "{}"),
      call(0, undefined, undefined, "1}"),
    ]);
    expect(toolCalls).toEqual([
      { id: "a", name: "Send", arguments: '{"x":1}' },
      { id: "b", name: "React", arguments: "{}" },
    ]);
  });

  it.each([
    ["one index for all", [call(0, "a", "Send", "{}"), call(0, "b", "React", "{}")]],
    ["no index", [call(undefined, "a", "Send", "{}"), call(undefined, "b", "React", "{}")]],
  ])("keeps whole calls apart that come with %s", (_what, deltas) => {
    expect(build(deltas).toolCalls.map(({ id, name }) => [id, name])).toEqual([
      ["a", "Send"],
      ["b", "React"],
    ]);
  });

  it("keeps whole calls apart that come with one index and one id", () => {
    const whole = ['{"x":1}', '{"x":2}'].map((json) => call(0, "a", "Send", json));
    expect(build([...whole, call(0, "a", "Send", '{"x"'), call(0, "a", undefined, ":3}")]).toolCalls).toEqual(
      [1, 2, 3].map((x) => ({ id: "a", name: "Send", arguments: `{"x":${x}}` })),
    );
  });

  it("names calls without id by their position", () => {
    const { toolCalls } = build([call(undefined, undefined, "Send", "{}"), call(undefined, undefined, "React", "{}")]);
    expect(toolCalls.map(({ id, name }) => [id, name])).toEqual([
      ["call_0", "Send"],
      ["call_1", "React"],
    ]);
  });

  it("reads absent arguments as an empty object", () => {
    expect(build([call(0, "a", "Send", "")]).toolCalls[0]?.arguments).toBe("{}");
  });

  it("leaves broken arguments as the model wrote them", () => {
    expect(build([call(0, "a", "Send", '{"x": "y')]).toolCalls[0]?.arguments).toBe('{"x": "y');
  });

  it("reports tokens, the cached ones apart, and the cost", () => {
    const usage = {
      prompt_tokens: 900,
      completion_tokens: 30,
      prompt_tokens_details: { cached_tokens: 800 },
      cost: 0.01,
    };
    expect(build([{ content: "Hi" }], { usage }).usage).toEqual({
      promptTokens: 900,
      cachedTokens: 800,
      completionTokens: 30,
      costUsd: 0.01,
      isEstimated: false,
    });
  });

  it("estimates the tokens that the stream did not count", () => {
    const { usage } = build([{ content: "12345678" }], {}, "x".repeat(401));
    expect(usage).toEqual({
      promptTokens: 101,
      cachedTokens: 0,
      completionTokens: 2,
      costUsd: undefined,
      isEstimated: true,
    });
  });

  it("is not complete without a finish", () => {
    const builder = new CompletionBuilder();
    builder.add({ choices: [{ delta: { content: "half an" } }] });
    expect(() => builder.build(() => "")).toThrow(StreamError);
  });

  it.each([
    ["that is no object", "text"],
    ["with content that is no text", { choices: [{ delta: { content: 5 } }] }],
    ["that reports an error", { choices: [{ delta: {}, finish_reason: "error", error: { message: "overloaded" } }] }],
  ])("refuses a chunk %s", (_what, chunk) => {
    expect(() => new CompletionBuilder().add(chunk)).toThrow(StreamError);
  });
});
