import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { commands } from "../examples/commands/who.ts";
import { sensor } from "../examples/sensors/arrival.ts";
import { tool } from "../examples/tools/fs-words.ts";
import { loadAll } from "../src/app/start/load.ts";
import type { UserId } from "../src/base/lib/ids.ts";
import { definitionCheck } from "../src/domain/agents/definition-check.ts";
import { parsePath } from "../src/domain/files/path.ts";
import type { CommandContext } from "../src/engine/control/define-command.ts";
import { findForm, helpFor, readCommandLine } from "../src/engine/operations/command-line.ts";
import type { Scene } from "../src/engine/operations/sensor.ts";
import type { AnyTool, ToolContext } from "../src/engine/operations/tool.ts";
import { readArguments, Toolbox } from "../src/engine/operations/toolbox.ts";
import { makeAgent } from "./support/agents.ts";

// The examples of docs/contributing.md work.

const helper = makeAgent("helper");

it("the tool is offered to models, and reads a person's command as it reads a model's call", async () => {
  const toolbox = new Toolbox([tool]);
  expect(toolbox.offer(helper).definitions.map(({ name }) => name)).toEqual(["FS_Words_k3f9"]);
  const path = "agents:/helper/persona.md";
  const { form, rest } = findForm([tool], `words ${path}`) ?? {};
  expect(form).toBe(tool);
  expect(readCommandLine(tool, rest ?? "")).toEqual({ path });
  const { input } = readArguments(tool, JSON.stringify({ path }));
  const context = { files: { read: async () => ({ text: "one  two\nthree" }) } } as unknown as ToolContext;
  expect(await tool.run(input, context, "read")).toEqual({ result: "3 words" });
});

it("the sensor notices people who join, and no agents", async () => {
  const notice = (stateKey: string, fields: object = {}) => {
    const event = { type: "m.room.member", stateKey, content: { membership: "join" } };
    const scene = { agent: makeAgent("helper", { ...fields }), agentsHere: [helper], event };
    return sensor.notice?.(scene as unknown as Scene);
  };
  expect(await notice("@ann:test")).toEqual({ reason: "new event" });
  expect(await notice(helper.userId)).toBeUndefined();
  expect(await notice("@ann:test", { reply: "mention" })).toBeUndefined();
});

it("the command tells who may do what, and has help", async () => {
  const [who] = commands;
  if (!who) throw new Error("there is no command");
  expect(helpFor(who, "!")).toContain("`!who`\n\nLists the people");
  const context = {
    event: { roomId: "!room:test" },
    rooms: { humans: async () => ["@ann:test", "@bob:test"] },
    rights: { of: async (userId: UserId) => (userId === "@ann:test" ? "operate" : "chat") },
  } as unknown as CommandContext;
  expect(await who.run({}, context)).toBe("- @ann:test: operate\n- @bob:test: chat");
});

it("the sub-agent can be used, and has tools that there are", async () => {
  const tools = await loadAll<AnyTool>("tools", "tool");
  const text = readFileSync(new URL("../examples/subagents/reader.md", import.meta.url), "utf8");
  const check = definitionCheck(tools.map(({ name }) => name));
  check(parsePath("system:/subagents/reader.md"), text);
  expect(() => check(parsePath("system:/subagents/reader.md"), text.replace("FS_Grep", "FS_Grab"))).toThrow("FS_Grep?");
});
