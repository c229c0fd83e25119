import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { splitThoughts } from "../../../src/adapters/model/thoughts.ts";

describe("thoughts", () => {
  it.each([
    ["no block", "Hello", "Hello", ""],
    ["a block before the text", "<think>hm</think>\n\nHello", "Hello", "hm"],
    ["a block in the middle", "Hello <think>hm</think>you", "Hello you", "hm"],
    ["several blocks", "<think>a</think>x<think>b</think>y", "xy", "a\n\nb"],
    ["an unclosed block", "Hello <think>and then", "Hello", "and then"],
    ["a block that only closes", "hm\n</think>\nHello", "Hello", "hm"],
    ["a block inside a block", "<think>a<think>b</think>c</think>d", "d", "a\n\nb\n\nc"],
    ["an empty block", "<think>\n\n</think>Hello", "Hello", ""],
    ["capitals", "<THINK>hm</THINK>Hello", "Hello", "hm"],
    ["the long form of the tag", "<thinking>hm</thinking>Hello", "Hello", "hm"],
    ["nothing", "", "", ""],
  ])("separates %s", (_name, content, text, thought) => {
    expect(splitThoughts(content)).toEqual({ text, thought });
  });

  it("never says what stands in a block", () => {
    const part = fc.constantFrom("<think>", "</think>", "said", " ", "<", "think>");
    fc.assert(
      fc.property(fc.array(part), fc.array(part), (before, after) => {
        const { text } = splitThoughts(`${before.join("")}<think>secret</think>${after.join("")}`);
        expect(text).not.toContain("secret");
      }),
    );
  });
});
