import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { loadAll } from "../src/app/start/load.ts";
import type { AnyCommand } from "../src/engine/control/define-command.ts";
import type { AnyTool } from "../src/engine/operations/tool.ts";
import { agentsPage, commandsPage, configurationPage, withExamples } from "./support/documents.ts";

// These documents are made, not written: `npm run docs` brings them up to date.

it("configuration.md explains every key of config.yaml", () =>
  expect(configurationPage()).toMatchFileSnapshot("../docs/configuration.md"));

it("agents.md explains every field of agent.json", () => expect(agentsPage()).toMatchFileSnapshot("../docs/agents.md"));

it("commands.md explains every command", async () => {
  const tools = await loadAll<AnyTool>("tools", "tool");
  const commands = (await loadAll<readonly AnyCommand[]>("commands", "commands")).flat();
  await expect(commandsPage([...commands, ...tools])).toMatchFileSnapshot("../docs/commands.md");
});

it("contributing.md shows the examples as they are", async () => {
  const document = readFileSync(new URL("../docs/contributing.md", import.meta.url), "utf8");
  await expect(withExamples(document)).toMatchFileSnapshot("../docs/contributing.md");
});
