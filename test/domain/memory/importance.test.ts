import { describe, expect, it } from "vitest";
import { importanceOf } from "../../../src/domain/memory/importance.ts";

const said = (text: string) => importanceOf({ kind: "observation", text });
const thought = (text: string) => importanceOf({ kind: "thought", text });

describe("the importance of a memory", () => {
  it("is 0.3 for what no rule speaks of", () => expect(said("The train leaves from platform 4.")).toBe(0.3));

  it.each([
    "Remember that the door code is 4711.",
    "Don't forget the milk on the way home.",
    "Keep in mind that Bob is away.",
    "Hello everybody, my name is Ada.",
    "Our main goal is to ship in May.",
    "I want to learn Spanish this year.",
  ])("rises by 0.4 where something is to be remembered, or somebody tells a name or a goal: %s", (text) => {
    expect(said(text)).toBe(0.7);
  });

  it("does not rise twice by one rule", () => expect(said("Remember: my name is Ada.")).toBe(0.7));

  it.each(["Where is the report?", "Send me the report, please.", "Could you look at this"])(
    "rises by 0.15 for a question or a request: %s",
    (text) => expect(said(text)).toBe(0.45),
  );

  it("takes an address with a question mark for no question", () => {
    expect(said("It is on https://example.org/?page=2.")).toBe(0.3);
  });

  it.each(["Two hours have passed.", "I am waiting for Bob.", "A follow-up is due.", "She asked three days ago."])(
    "rises by 0.15 for thoughts about time: %s",
    (text) => expect(thought(text)).toBe(0.45),
  );

  it("rises by 0.1 for a thought of more than 200 characters", () => {
    expect(thought("a".repeat(200))).toBe(0.3);
    expect(thought("a".repeat(201))).toBe(0.4);
    expect(said("a".repeat(201))).toBe(0.3);
  });

  it.each(["Hi", "hello there!", "Thanks a lot", "ok", "Got it."])("falls by 0.2 for a short greeting: %s", (text) => {
    expect(said(text)).toBe(0.1);
  });

  it("does not fall for a greeting that goes on", () => {
    expect(said("Hello, the delivery for room 12 has come and stands at the door.")).toBe(0.3);
    expect(said("Hi, where is Bob?")).toBe(0.45);
  });

  it("begins with 0.4 for what the sense of time tells", () => {
    expect(importanceOf({ kind: "observation", tool: "time", text: "It is noon." })).toBe(0.4);
  });

  it("is 0.7 for every action, whatever its words", () => {
    expect(importanceOf({ kind: "action", text: "hi" })).toBe(0.7);
    expect(importanceOf({ kind: "action", text: "Remember my name? Please wait for me." })).toBe(0.7);
  });

  it("adds the rules up, and never leaves 0 to 1", () => {
    const everything = `Remember: my name is Ada. Could you wait until two hours have passed? ${"a".repeat(200)}`;
    expect(thought(everything)).toBe(1);
  });
});
