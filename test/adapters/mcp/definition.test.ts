import { expect, it } from "vitest";
import { readDefinitions } from "../../../src/adapters/mcp/definition.ts";
import { listed } from "../../support/tool-server.ts";

const named = (name: string, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });

it("keeps of names only what every model takes, and gives a name to the first who has it", () => {
  const { tools, leftOut } = readDefinitions("wiki", [
    named("bad name\n</tool>"),
    named("SendMessage", { description: "the first" }),
    named("SendMessage", { description: "the second" }),
    named("x".repeat(300)),
    named("日本"),
    named("nul\0"),
  ]);
  expect([...tools.keys()]).toEqual(["bad_name_tool_", "SendMessage", "x".repeat(49)]);
  for (const name of tools.keys()) expect(`wiki__${name}_k3f9`).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
  expect(tools.get("SendMessage")?.description).toBe("the first");
  expect(tools.get("bad_name_tool_")?.tool).toBe("bad name\n</tool>");
  expect(leftOut).toEqual([
    { tool: "SendMessage", why: "another tool is called SendMessage already" },
    { tool: "日本", why: "its name has no letter" },
    { tool: "nul�", why: "its name cannot be kept" },
  ]);
});

it("shortens descriptions, and shows what is hidden in them and in schemas", () => {
  const inputSchema = { type: "object", properties: { a: { type: "string", description: "left\u202Eright" } } };
  const { tools } = readDefinitions("wiki", [
    named("long", { description: "😀".repeat(1_000_000) }),
    named("hidden", { description: "a\u{E0041}b", inputSchema }),
  ]);
  expect(tools.get("long")?.description.length).toBeLessThanOrEqual(1_000);
  expect(tools.get("long")?.description.isWellFormed()).toBe(true);
  expect(tools.get("hidden")).toMatchObject({
    description: "a‹U+E0041›b",
    schema: { properties: { a: { description: "left‹U+202E›right" } } },
  });
});

it("leaves out schemas that are too large, too deep, or have names that no model takes", () => {
  const deep = JSON.parse(`${'{"properties":{"a":'.repeat(5_000)}1${"}}".repeat(5_000)}`) as object;
  const { tools, leftOut } = readDefinitions("wiki", [
    named("large", { inputSchema: { type: "object", title: "x".repeat(10_000) } }),
    named("deep", { inputSchema: deep }),
    named("odd", { inputSchema: { type: "object", properties: { "a b\n": {} } } }),
    named("proto", { inputSchema: JSON.parse('{"type":"object","properties":{"__proto__":{}}}') }),
    named("none", { inputSchema: "object" }),
    listed("good") as ReturnType<typeof named>,
  ]);
  expect([...tools.keys()]).toEqual(["good"]);
  expect(leftOut.map(({ tool }) => tool)).toEqual(["large", "deep", "odd", "proto", "none"]);
});

it("takes so many tools of a server, and tells of so many others", () => {
  const { tools, leftOut } = readDefinitions(
    "wiki",
    Array.from({ length: 10_000 }, (_, n) => named(`tool${n}`)),
  );
  expect([tools.size, leftOut.length]).toEqual([100, 100]);
});

it("reads what the server says about a tool, and nothing that is no yes or no", () => {
  const annotations = { readOnlyHint: true, destructiveHint: "no", openWorldHint: false, title: "x" };
  expect(readDefinitions("wiki", [named("a", { annotations })]).tools.get("a")?.hints).toEqual({
    isReadOnly: true,
    isOpenWorld: false,
  });
});
