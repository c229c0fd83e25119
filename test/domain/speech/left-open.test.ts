import { describe, expect, it } from "vitest";
import { findLeftOpen } from "../../../src/domain/speech/left-open.ts";

describe("what a message leaves open", () => {
  it.each([
    ["Shall I book it?", true],
    ["Shall I book it? Tell me.", true],
    ['He said "really?"', true],
    ["Is it **this one?**", true],
    ["你要哪一个？", true],
    ["It is done.", false],
    ["See https://example.org/?q=1 for more.", false],
    ["Use `a ? b : c` there.", false],
    ["```\nwhat?\n```\nThat is it.", false],
    ["> what is it?\nA fish.", false],
    ["Say what?then", false],
  ])("%j asks: %j", (text, isQuestion) => {
    expect(findLeftOpen(text)).toEqual({ isQuestion, isPromise: false });
  });

  it.each([
    ["I will send it tomorrow.", true],
    ["I'll look at it.", true],
    ["Fine, I’ll do that", true],
    ["I will not do that.", false],
    ["I'll never tell.", false],
    ["You will see.", false],
    ["> I will come\nGood.", false],
    ["`I will`", false],
    ["I willingly agree.", false],
  ])("%j promises: %j", (text, isPromise) => {
    expect(findLeftOpen(text)).toEqual({ isQuestion: false, isPromise });
  });
});
