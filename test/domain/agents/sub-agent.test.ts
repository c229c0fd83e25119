import { describe, expect, it } from "vitest";
import { z } from "zod";
import { definitionCheck } from "../../../src/domain/agents/definition-check.ts";
import { loadShipped } from "../../../src/domain/agents/shipped.ts";
import { delegateTool, parseSubAgent } from "../../../src/domain/agents/sub-agent.ts";
import { parsePath } from "../../../src/domain/files/path.ts";
import { SubAgents } from "../../../src/engine/operations/sub-agents.ts";
import { defineTool } from "../../../src/engine/operations/tool.ts";
import { Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { makeAgent } from "../../support/agents.ts";

const toolNamed = (name: string, set: "core" | "web" | "planner" = "core") =>
  defineTool({
    name,
    set,
    description: name,
    kind: "read",
    isRepeatable: true,
    input: z.object({}),
    run: async () => ({ result: name }),
  });
const toolbox = new Toolbox([
  toolNamed(delegateTool),
  toolNamed("FS_Read"),
  toolNamed("Browse", "web"),
  toolNamed("todos_add", "planner"),
]);

const clerk = `---
name: clerk
description: finds files
tools: [FS_Read]
---

You are the clerk.
`;
const file = (name: string) => parsePath(`system:/subagents/${name}.md`);
const refusal = (text: string, name = "clerk"): string => {
  try {
    definitionCheck(toolbox.names)(file(name), text);
  } catch (error) {
    return String(error);
  }
  return "";
};

describe("a sub-agent's file", () => {
  it("says what it is, and then its prompt", () => {
    const text = clerk.replace("tools: [FS_Read]", "tools: [FS_Read]\nmodel: fast/one\ndelegates: [planner]");
    expect(parseSubAgent(file("clerk"), text)).toEqual({
      name: "clerk",
      description: "finds files",
      tools: ["FS_Read"],
      model: "fast/one",
      delegates: ["planner"],
      prompt: "You are the clerk.",
    });
  });

  it("is the same with the line ends of Windows", () => {
    expect(parseSubAgent(file("clerk"), clerk.replaceAll("\n", "\r\n"))).toEqual(parseSubAgent(file("clerk"), clerk));
  });

  it.each([
    ["nothing of it", "You are the clerk.", "its fields are missing at its beginning"],
    ["no YAML", clerk.replace("[FS_Read]", "[FS_Read"), "is not valid YAML"],
    ["a text for an object", "---\nclerk\n---\n\nx", "expected settings"],
    ["no name", clerk.replace("name: clerk\n", ""), "name: missing, expected a name"],
    ["another name", clerk.replace("name: clerk", "name: clark"), 'found "clark", and the file is clerk.md'],
    ["a key that is none", clerk.replace("tools:", "toolz:"), 'unknown key "toolz", did you mean "tools"?'],
    [
      "a tool that is not there",
      clerk.replace("[FS_Read]", "[FS_Raed]"),
      "there is no tool FS_Raed: did you mean FS_Read?",
    ],
    ["delegate as a tool", clerk.replace("[FS_Read]", "[delegate]"), "`delegates`"],
    ["a description of two lines", clerk.replace("finds files", '"a\\nb"'), "one line of text"],
    ["a prompt without end", clerk + "x".repeat(20_000), "its prompt is longer than 20000 characters"],
    ["no prompt", clerk.replace("You are the clerk.", ""), "it has no prompt"],
  ])("is refused with %s", (_, text, reason) => {
    expect(refusal(text)).toContain(reason);
  });

  it("that is no text is refused, and other files beside it are not looked at", () => {
    expect(() => definitionCheck([])(file("clerk"), null)).toThrow("it is no text");
    expect(() => definitionCheck([])(parsePath("system:/subagents/notes.txt"), "notes")).not.toThrow();
    expect(() => definitionCheck([])(parsePath("users:/@a:b/subagents/clerk.md"), "notes")).not.toThrow();
  });

  it("is right where it is shipped", async () => {
    const shipped = [...(await loadShipped())].filter(([path]) => path.startsWith("/subagents/"));
    const names = shipped.map(([path, text]) => parseSubAgent(parsePath(`system:${path}`), text).name);
    expect(names.sort()).toEqual(["clerk", "librarian", "planner"]);
  });
});

describe("an agent", () => {
  const shipped = new Map([["/subagents/clerk.md", clerk]]);
  const offered = (settings: Readonly<Record<string, unknown>>, files: Readonly<Record<string, string>> = {}) => {
    const rows = Object.entries(files).map(([name, text]) => ({ ...file(name), text }));
    return new SubAgents(shipped, toolbox, undefined).of(makeAgent("helper", settings), rows);
  };
  const namesOf = (...given: Parameters<typeof offered>) => offered(...given).map(({ name }) => name);
  const planner = clerk.replace("name: clerk", "name: planner").replace("FS_Read", "todos_add");

  it("may delegate to those that are shipped and those that admins added", () => {
    expect(namesOf({})).toEqual(["clerk"]);
    expect(namesOf({}, { planner })).toEqual(["clerk", "planner"]);
  });

  it("may delegate only to those that its settings name, and to none where it has no tool for it", () => {
    expect(namesOf({ subAgents: ["planner"] }, { planner })).toEqual(["planner"]);
    expect(namesOf({ subAgents: [] }, { planner })).toEqual([]);
    expect(namesOf({ tools: ["web", "planner"], answer: "text" }, { planner })).toEqual([]);
  });

  it("is offered what an admin wrote over a shipped one, and the shipped one where that cannot be used", () => {
    const prompts = (text: string) => offered({}, { clerk: text }).map(({ prompt }) => prompt);
    expect(prompts(clerk.replace("the clerk", "another clerk"))).toEqual(["You are another clerk."]);
    expect(prompts("nonsense")).toEqual(["You are the clerk."]);
  });

  it("is not offered one whose tools are not all there", () => {
    expect(namesOf({}, { artist: planner.replace("planner", "artist").replace("todos_add", "image_edit") })).toEqual([
      "clerk",
    ]);
  });

  it("has no tool through a sub-agent that was not given to itself, but for those that sub-agents are there for", () => {
    const reader = clerk.replace("name: clerk", "name: reader").replace("FS_Read", "Browse");
    expect(namesOf({ tools: ["core"] }, { planner, reader })).toEqual(["clerk", "planner"]);
    expect(namesOf({ tools: ["core", "web"] }, { planner, reader })).toEqual(["clerk", "planner", "reader"]);
  });
});
