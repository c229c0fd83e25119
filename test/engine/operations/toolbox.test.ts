import { expect, it } from "vitest";
import { z } from "zod";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { ToolSet } from "../../../src/domain/agents/settings.ts";
import { defineTool } from "../../../src/engine/operations/tool.ts";
import { readArguments, Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { makeAgent } from "../../support/agents.ts";

const make = (name: string, set: ToolSet, command?: string) =>
  defineTool({
    name,
    set,
    ...(command !== undefined && { command }),
    description: `What ${name} does`,
    kind: "read",
    isRepeatable: true,
    input: z.object({ count: z.int().min(1).describe("How many"), word: z.string().describe("Which").optional() }),
    run: async () => ({ result: "" }),
  });
const [zebra, ant, spider] = [make("Zebra", "core", "zebra"), make("Ant", "core"), make("Spider", "web", "spider")];
const toolbox = new Toolbox([zebra, spider, ant]);
const agent = makeAgent("helper", { tools: ["core"] });

it("gives an agent the tools of its sets, in the order of their names", () => {
  expect(toolbox.of(agent)).toEqual([ant, zebra]);
});

it("offers the model names with the agent's suffix, and the schema of each input", () => {
  expect(toolbox.offer(agent).definitions[0]).toMatchObject({
    name: "Ant_k3f9",
    description: "What Ant does",
    parameters: { type: "object", required: ["count"], properties: { count: { type: "integer" }, word: {} } },
  });
});

it("tells the model nothing that the guide says for all functions, or that a refusal would say", () => {
  expect(toolbox.offer(agent).text).not.toMatch(/todo|minLength|additionalProperties/);
});

it("offers nobody a tool that can do nothing, but takes calls and commands of it, so that it says why", () => {
  const all = new Toolbox([zebra, spider, ant], (tool) => tool === zebra);
  expect(all.of(agent)).toEqual([zebra]);
  expect(all.of(agent, ["Spider", "Zebra"])).toEqual([zebra]);
  expect(all.offer(agent).definitions.map(({ name }) => name)).toEqual(["Zebra_k3f9"]);
  expect(() => all.byName(agent, "Bee_k3f9")).toThrow("There is no function Bee_k3f9. Functions: Zebra_k3f9");
  expect(all.byName(agent, "Ant_k3f9")).toBe(ant);
  expect(all.findCommandable(agent)).toContain(ant);
});

it("finds a tool by its name with suffix", () => {
  expect(toolbox.byName(agent, "Zebra_k3f9")).toBe(zebra);
});

it.each(["Zebra", "Zebra_xxxx", "Spider_k3f9", "", "zebra_k3f9"])("names all functions to who calls %j", (name) => {
  expect(() => toolbox.byName(agent, name)).toThrow(
    new UserError(`There is no function ${name}. Functions: Ant_k3f9, Zebra_k3f9`),
  );
});

it("lets people command what the agent has, and what its sub-agents have", () => {
  const plan = make("Plan", "planner");
  const all = new Toolbox([zebra, spider, plan]);
  expect(all.findCommandable(agent)).toEqual([plan, zebra]);
  expect(all.findCommandable(makeAgent("helper", { tools: ["core"], subAgents: [] }))).toEqual([zebra]);
});

it.each([
  ["as they are", '{"count": 3}', { input: { count: 3 }, todo: undefined }],
  ["a number that is written as a text", '{"count": " 3 "}', { input: { count: 3 }, todo: undefined }],
  ["with the todo that the call is for", '{"count": 3, "todo": 7}', { input: { count: 3 }, todo: 7 }],
])("reads valid arguments: %s", (_how, json, read) => {
  expect(readArguments(ant, json)).toEqual(read);
});

it.each([
  ["{", "not valid JSON"],
  ["[]", "arguments"],
  ["null", "arguments"],
  ["{}", "count"],
  ['{"count":0}', "count"],
  ['{"count":"three"}', 'count: found "three", expected a whole number, 1 or more'],
  ['{"count":true}', "count"],
  ['{"count":1,"todo":0}', "todo: found 0, expected a whole number, 1 or more"],
  ['{"count":1,"word":2}', "word"],
  ['{"count":1,"other":2}', "other"],
  ['{"count":1,"__proto__":{"word":"x"}}', "__proto__"],
])("says what is wrong with the arguments %s", (json, what) => {
  expect(() => readArguments(ant, json)).toThrow(UserError);
  expect(() => readArguments(ant, json)).toThrow(what);
});

it("has tools that come and go, for those agents that have them, and tells models of each as it is now", () => {
  const agentWith = makeAgent("helper", { tools: ["core"], mcp: ["wiki"] });
  const remote = { ...make("wiki__find", "core"), set: "mcp" as const, schema: { type: "object", title: "Theirs" } };
  let now = { ...remote, revision: "1" };
  const source = {
    of: ({ settings }: typeof agent) => (settings.mcp.length > 0 ? [now] : []),
    find: (name: string) => (name === now.name ? now : undefined),
  };
  const all = new Toolbox([zebra, ant], () => true, source);
  expect(all.of(agent)).toEqual([ant, zebra]);
  const offer = all.offer(agentWith);
  expect(offer.definitions.at(-1)).toEqual({
    name: "wiki__find_k3f9",
    description: "What wiki__find does",
    parameters: { type: "object", title: "Theirs" },
  });
  expect(all.offer(agentWith)).toBe(offer);
  now = { ...now, revision: "2", description: "Changed" };
  expect(all.offer(agentWith).text).toContain("Changed");
  expect(all.byName(agentWith, "wiki__find_k3f9")).toBe(now);
  expect(() => all.byName(agent, "wiki__find_k3f9")).toThrow("There is no function");
  expect(all.find("wiki__find")).toBe(now);
  expect([all.findCommandable(agentWith), all.findCommandable(agent)].map((tools) => tools.includes(now))).toEqual([
    true,
    false,
  ]);
});
