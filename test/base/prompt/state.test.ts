import { describe, expect, it } from "vitest";
import { layout } from "../../../src/base/prompt/layout.ts";
import type { StateView, World } from "../../../src/base/prompt/types.ts";
import { exampleWorld } from "./worlds.ts";

const golden = (name: string) => `golden/${name}.txt`;

const file = (text: string) => ({ text, chars: text.length });
const calls = Array.from(
  { length: 30 },
  (_, index) => `[2024-12-25 11:${10 + index}:00] TOOL_USE BrowseWeb #${index}: done\n`,
).join("");
const state: StateView = {
  status: file("# Current Goal: Research is done\n- Next: Outline the blog post\n"),
  activity: file(
    `${calls}[2024-12-25 11:50:00] THOUGHT: Three sources agree\n  in all that matters\n[2024-12-25 11:55:00] USER_FEEDBACK: Shorter, please\n`,
  ),
};
const rules = { title: "AGENTS.md", text: "# Memory\n\n1. NOW.md is your current status <first>.", isPlain: true };
const world: World = { ...exampleWorld, guides: [...exampleWorld.guides, rules], state };

describe("the working files", () => {
  it("stand in the layout seed as the source document has them: rules, mental state, activity", async () => {
    await expect(`${layout(world, "seed").system}\n`).toMatchFileSnapshot(golden("state-system"));
  });

  it("that nobody has written are idle and empty there", () => {
    const { system } = layout({ ...world, state: { status: undefined, activity: undefined } }, "seed");
    expect(system).toMatch(/You are currently working on:\nStatus: Idle\n\n=== RECENT ACTIVITY LOG ===\n$/);
  });

  it("leave that layout as it is for an agent without any", () => {
    const { state: _, ...without } = { ...world, guides: exampleWorld.guides };
    expect(layout(without, "seed")).toEqual(layout(exampleWorld, "seed"));
  });

  it("stand in the tail of the layout cacheable, without the calls that the bridge has noted", () => {
    const { user, borders } = layout(world, "cacheable");
    const tail = user.slice(borders.at(-1));
    expect(tail).toContain(`<workingFile name="NOW.md">${state.status?.text.trimEnd()}</workingFile>`);
    expect(tail).toContain(`<workingFile name="LOG.md">[2024-12-25 11:50:00] THOUGHT: Three sources agree
  in all that matters
[2024-12-25 11:55:00] USER_FEEDBACK: Shorter, please</workingFile>`);
    expect(tail).not.toContain("BrowseWeb");
  });

  it("cost nothing there where nobody has written them", () => {
    const none = { ...exampleWorld, state: { status: undefined, activity: file(calls) } };
    expect(layout(none, "cacheable")).toEqual(layout(exampleWorld, "cacheable"));
  });

  it("are cut in the layout seed to what there is room for, to the newest entries, and it is said", () => {
    const long = { status: state.status, activity: file(calls.repeat(100)) };
    const small = { ...world, guides: [], rooms: [], state: long, charsMax: 12_000 };
    const { system, user } = layout(small, "seed");
    expect(system.length + user.length).toBeLessThanOrEqual(12_000);
    expect(system).toContain("[older entries: see LOG.md]\n[2024-12-25");
    expect(system.trimEnd()).toMatch(/#29: done$/);
  });

  it("take little room in the layout cacheable, however long they are", () => {
    const entry = "[2024-12-25 11:50:00] THOUGHT: much\n";
    const long = { status: file("goal ".repeat(2_000)), activity: file(entry.repeat(500)) };
    const more =
      layout({ ...world, state: long }, "cacheable").user.length - layout(exampleWorld, "cacheable").user.length;
    expect(more).toBeLessThan(3_200);
  });
});
