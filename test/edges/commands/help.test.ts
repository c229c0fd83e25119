import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { AnyCommand, CommandContext } from "../../../src/engine/control/define-command.ts";
import { commandOf } from "../../../src/engine/operations/command-line.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";
import { Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { topics } from "../../../src/engine/operations/topics.ts";
import { makeAgent } from "../../support/agents.ts";

const modulesIn = async <Module>(name: string): Promise<Module[]> => {
  const folder = new URL(`../../../src/edges/${name}/`, import.meta.url);
  const files = (await readdir(folder)).filter((file) => file.endsWith(".ts")).sort();
  return Promise.all(files.map(async (file) => (await import(new URL(file, folder).href)) as Module));
};
const commands = (await modulesIn<{ commands: AnyCommand[] }>("commands")).flatMap((module) => module.commands);
const tools = (await modulesIn<{ tool: AnyTool }>("tools")).map(({ tool }) => tool);

/** Answers `!help ABOUT` in a room with an agent, or in the control room. */
const help = async (about?: string, given: Partial<CommandContext> = {}): Promise<string> => {
  const command = commands.find((one) => one.command === "help");
  const context = {
    commands,
    prefix: "!",
    level: "admin",
    room: { kind: "chat" },
    agents: [makeAgent("helper")],
    toolbox: new Toolbox(tools),
    ...given,
  } as unknown as CommandContext;
  const answer = await command?.run({ about }, context);
  return typeof answer === "string" ? answer : "";
};
const control = { room: { kind: "control" }, agents: [] } as unknown as Partial<CommandContext>;

describe("!help", () => {
  it("has one line for each topic, and names every command in one of them", async () => {
    const [inRoom, inControl] = [await help(), await help(undefined, control)];
    const lines = inRoom.split("\n").filter((line) => line.startsWith("- "));
    expect(lines.length).toBeLessThanOrEqual(Object.keys(topics).length);
    for (const form of [...commands, ...tools]) {
      const listed = [inRoom, inControl].filter((text) => text.includes(`\`!${commandOf(form)}\``));
      expect(listed, commandOf(form)).not.toHaveLength(0);
    }
    expect(inRoom).toContain("`!help files` explains the commands of one line, `!help cat` a single one.");
  });

  it("of a topic explains each of its commands in a line", async () => {
    const text = await help("files");
    expect(text).toContain("- `!cat <path>`: Shows a text file");
    expect(text).toContain("- `!restore <path> [version]`: ");
    expect(text).not.toContain("!say");
    expect(await help("agents", control)).toContain("- `!agent list`: ");
  });

  it("has no pattern of paths outside of code, where Markdown would take its stars away", async () => {
    for (const about of ["files", "find", "grep", "search", "mv"])
      expect((await help(about)).replace(/`[^`]*`/g, "")).not.toContain("*");
  });

  it("of a command explains it in full, and its relatives in a line", async () => {
    const text = await help("!schedule");
    expect(text).toContain("For example: `!schedule 0 9 * * 1-5 ");
    expect(text).toContain("- `!schedule remove <id>`: ");
    expect(await help("agent", control)).toContain("- `!agent delete ");
  });

  it("speaks to people where a tool's description speaks to its model", async () => {
    expect(await help("schedule")).toContain("Wakes the agent in this room with a text");
    expect(await help("schedule")).not.toContain("Wakes you");
  });

  it("guesses what was meant", async () => {
    await expect(help("flies")).rejects.toThrow("Did you mean `!help files`?");
    await expect(help("wirte")).rejects.toThrow("Did you mean `!help write`?");
  });
});
