import { expect, it } from "vitest";
import { render } from "../../../src/base/lmml/render.ts";
import { tool } from "../../../src/edges/tools/run-command.ts";
import type { ToolContext } from "../../../src/engine/operations/tool.ts";

const say = async (by: ToolContext["by"], bytes: number): Promise<string> => {
  const outcome = { reason: "exit", code: 0, bytes, stdout: { text: "a […] z", isCut: true } };
  const context = {
    by,
    agent: { name: "helper" },
    sandboxCommands: { run: async () => ({ number: 7, outcome, sources: [] }) },
    sandboxes: { settings: { limits: { commandSeconds: 1 } } },
  };
  const { result } = await tool.run({ command: "yes" }, context as unknown as ToolContext, "create");
  return typeof result === "string" ? result : render(result);
};

it("says how much of a long output its file has", async () => {
  expect(await say("person", 100_000)).toContain("; all of its output: `sandbox:/.output/7`");
  expect(await say("person", 100_000_000)).toContain("; the first 64 MB of its output: `sandbox:/.output/7`");
  expect(await say("model", 100_000)).toContain(' wholeOutput="/workspace/.output/7"');
  expect(await say("model", 100_000_000)).toContain(' first64MB="/workspace/.output/7"');
});
