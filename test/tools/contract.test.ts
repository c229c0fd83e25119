import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { AnyCommand } from "../../src/agent/command.ts";
import { type Commandable, helpFor, readCommandLine, usageOf } from "../../src/agent/command-line.ts";
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
const commandsFolder = new URL("../../src/commands/", import.meta.url);
const commands = await Promise.all(
  (await readdir(commandsFolder))
    .filter((file) => file.endsWith(".ts"))
    .map(async (file) => {
      const { commands } = (await import(new URL(file, commandsFolder).href)) as { commands: readonly AnyCommand[] };
      return commands.map((command) => ({ name: command.command, command, file }));
    }),
).then((lists) => lists.flat());
const firstWords = commands.map(({ name }) => name.split(" ")[0]);

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
    expect([...operationKinds, "function"]).toContain(typeof tool.kind === "function" ? "function" : tool.kind);
    expect(toolSets).toContain(tool.set);
  });

  it("gives the model the schema of an object, with every field described", () => {
    const schema = z.toJSONSchema(tool.input) as { type: string; properties: Record<string, { description: string }> };
    expect(schema.type).toBe("object");
    for (const [field, { description }] of Object.entries(schema.properties)) expect(description, field).toBeTruthy();
  });
});

describe.each(withCommand)("the command of $name", ({ tool }) => {
  it("is one word or two, and no command of the bridge's own", () => {
    expect(tool.command).toMatch(/^[a-z][a-z-]*( [a-z][a-z-]*)?$/);
    expect(firstWords).not.toContain(tool.command?.split(" ")[0]);
  });

  it("without arguments runs, or says what is missing", () => runsOrSays(tool));
  it("has a help that shows its usage and every field", () => explains(tool));
});

describe.each(commands)("the command $name", ({ command, file }) => {
  it("is one word or two, with a description, in a file that is called after its first word", () => {
    expect(command.command).toMatch(/^[a-z][a-z-]*( [a-z][a-z-]*)?$/);
    expect(command.description).toMatch(/^[A-Z].{15,}\.$/s);
    expect(file).toMatch(new RegExp(`^${command.command.split(" ")[0]}(-[a-z-]+)?\\.ts$`));
  });
  it("without arguments runs, or says what is missing", () => runsOrSays(command));
  it("has a help that shows its usage and every field", () => explains(command));
  it("has positional arguments that it knows", () => {
    for (const field of command.positional ?? []) expect(Object.keys(command.input.shape)).toContain(field);
  });
});

it("commands of the bridge's own are unique", () => {
  expect(new Set(commands.map(({ name }) => name)).size).toBe(commands.length);
});

it("names are unique", () => {
  expect(new Set(tools.map(({ name }) => name.toLowerCase())).size).toBe(tools.length);
});

it("commands are unique", () => {
  expect(new Set(withCommand.map(({ tool }) => tool.command)).size).toBe(withCommand.length);
});

const runsOrSays = (form: Commandable): void => {
  try {
    expect(form.input.safeParse(readCommandLine(form, "")).success).toBe(true);
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
  }
};

const explains = (form: Commandable): void => {
  const help = helpFor(form, "!");
  expect(help).toContain(usageOf(form, "!"));
  for (const field of Object.keys(form.input.shape)) expect(help).toMatch(new RegExp(`\`${field}\`: \\S`));
};
