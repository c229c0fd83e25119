import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { helpFor, readCommandLine, usageOf } from "../../src/agent/command-line.ts";
import { toolSets } from "../../src/agent/settings.ts";
import { type AnyTool, operationKinds } from "../../src/agent/tool.ts";
import { UserError } from "../../src/lib/errors.ts";

const folder = new URL("../../src/tools/", import.meta.url);
const files = (await readdir(folder)).filter((file) => file.endsWith(".ts"));
const tools = await Promise.all(
  files.map(async (file) => {
    const { tool } = (await import(new URL(file, folder).href)) as { tool: AnyTool };
    return { file, name: tool.name, tool };
  }),
);
const withCommand = tools.filter(({ tool }) => tool.command !== undefined);
const plainCommands = ["help", "status", "stop"];

describe.each(tools)("$name", ({ file, tool }) => {
  it("has a name that models take, and its file is called after it", () => {
    expect(tool.name).toMatch(/^[A-Za-z][A-Za-z_]{1,48}$/);
    const kebab = tool.name
      .replaceAll("_", "-")
      .replace(/(?<=[a-z])(?=[A-Z])/g, "-")
      .toLowerCase();
    expect(file).toBe(`${kebab}.ts`);
  });

  it("says what it does, of which kind it is and to which set it belongs", () => {
    expect(tool.description).toMatch(/^[A-Z].{15,}\.$/s);
    expect(operationKinds).toContain(tool.kind);
    expect(toolSets).toContain(tool.set);
  });

  it("gives the model the schema of an object, with every field described", () => {
    const schema = z.toJSONSchema(tool.input) as { type: string; properties: Record<string, { description: string }> };
    expect(schema.type).toBe("object");
    for (const [field, { description }] of Object.entries(schema.properties)) expect(description, field).toBeTruthy();
  });
});

describe.each(withCommand)("the command of $name", ({ tool }) => {
  it("is a word, and no command of the bridge's own", () => {
    expect(tool.command).toMatch(/^[a-z][a-z-]*$/);
    expect(plainCommands).not.toContain(tool.command);
  });

  it("without arguments runs, or says what is missing", () => {
    try {
      expect(readCommandLine(tool, "")).toEqual({});
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
    }
  });

  it("has a help that shows its usage and every field", () => {
    const help = helpFor(tool, "!");
    expect(help).toContain(usageOf(tool, "!"));
    for (const field of Object.keys(tool.input.shape)) expect(help).toMatch(new RegExp(`\`${field}\`: \\S`));
  });
});

it("names are unique", () => {
  expect(new Set(tools.map(({ name }) => name.toLowerCase())).size).toBe(tools.length);
});

it("commands are unique", () => {
  expect(new Set(withCommand.map(({ tool }) => tool.command)).size).toBe(withCommand.length);
});
