import { describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { CommandWait } from "../../../src/domain/sandboxes/command-journal.ts";
import { tool as port } from "../../../src/edges/tools/get-host-port.ts";
import { tool as run } from "../../../src/edges/tools/run-command.ts";
import { tool as shot } from "../../../src/edges/tools/take-screenshot.ts";
import type { ToolContext } from "../../../src/engine/operations/tool.ts";

/** A context of somebody to whom the computer is closed; whatever reaches the computer is noted. */
const closed = () => {
  const reached: string[] = [];
  const refuse = () => Promise.reject(new UserError("closed here"));
  const context = {
    agent: { name: "helper" },
    files: { requireOpenComputer: refuse, sourcesOf: refuse },
    sandboxes: { settings: { limits: { commandSeconds: 60 } } },
    sandboxCommands: {
      run: async (_: unknown, { mayBegin }: CommandWait) => {
        await mayBegin?.();
        reached.push("run");
      },
    },
    hostPorts: { open: async () => reached.push("port") },
    browsers: { shoot: async () => reached.push("shot") },
  };
  return { reached, context: context as unknown as ToolContext };
};

describe("on a computer of which somebody here may not read all", () => {
  it.each([
    ["no command runs", run, { command: "ls" }],
    ["no port is opened", port, { container_port: 3_000 }],
    ["no picture is taken", shot, { url: "http://localhost:3000" }],
  ])("%s, and nobody is asked about it", async (_, tool, input) => {
    const { context, reached } = closed();
    await expect(tool.check?.(input, context)).rejects.toThrow("closed here");
    await expect(tool.run(input, context, "create")).rejects.toThrow("closed here");
    expect(reached).toEqual([]);
  });
});
