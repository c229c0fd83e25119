import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Database } from "../../adapters/database/connection.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { AgentName } from "../../base/lib/ids.ts";
import { settingsFile } from "../../domain/agents/agent.ts";
import { type AgentSettings, parseAgentSettings } from "../../domain/agents/settings.ts";
import { loadShipped } from "../../domain/agents/shipped.ts";
import { subAgentsFolder } from "../../domain/agents/sub-agent.ts";
import { differencesOf } from "../../domain/rights/rights.ts";
import { Agents } from "../../domain/tables/agents.ts";
import { Files } from "../../domain/tables/files.ts";
import { PermissionTable } from "../../domain/tables/permissions.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

const filesMost = 1_000;

/** Agents whose files are refused, and where the database, which counts, and config.yaml say different things. */
export async function* checkAgents(database: Database, { config, found }: CheckSetting): AsyncGenerator<Finding> {
  const rows = await new Agents(database).all();
  const files = await new Files(database).read(rows.map(({ name }) => ({ share: "agents", path: settingsFile(name) })));
  const texts = new Map(files.map(({ path, text }) => [path, text ?? ""]));
  const settings = new Map<AgentName, AgentSettings>();
  /** Agents of which something has been said. */
  let noted = 0;
  for (const { name } of rows) {
    const where = `agents:${settingsFile(name)}`;
    try {
      settings.set(name, parseAgentSettings(JSON.parse(texts.get(settingsFile(name)) ?? "{}"), where));
    } catch (error) {
      noted += 1;
      yield failed(
        "agents",
        `the agent ${name} runs on its last good settings, since its file is refused. ${error instanceof SyntaxError ? `${where}: ${error.message}` : messageOf(error)}`,
        `Correct ${where}.`,
      );
    }
  }
  const subAgents = await subAgentNames(database, settings);
  for (const [name, { subAgents: named }] of settings) {
    const unknown = (named ?? []).filter((one) => !subAgents.has(one));
    if (unknown.length === 0) continue;
    noted += 1;
    yield warning(
      "agents",
      `the agent ${name} is to delegate to ${unknown.join(", ")}, and there is no sub-agent of that name.`,
      `Correct subAgents in agents:${settingsFile(name)}, or write system:/subagents/${unknown[0]}.md.`,
    );
  }
  const servers = config.mcp.map((server) => server.name);
  for (const [name, { mcp }] of settings) {
    const unknown = mcp.filter((one) => !servers.includes(one));
    if (unknown.length === 0) continue;
    noted += 1;
    yield warning(
      "agents",
      `the agent ${name} is to have the tools of ${unknown.join(", ")}, and config.yaml has no server of that name.`,
      `Correct mcp in agents:${settingsFile(name)}, or write mcp.${unknown[0]} into config.yaml.`,
    );
  }
  if (noted === 0) yield ok("agents", rows.length === 0 ? "there are none yet." : `${rows.length} can be used.`);
  found.permissions = await new PermissionTable(database).all();
  const permissions = differencesOf(found.permissions, config.permissions);
  yield differences(config, permissions, settings, new Set(rows.map(({ name }) => name)));
}

/** Names of the sub-agents that are shipped and those that admins have written, if any agent names one. */
async function subAgentNames(
  database: Database,
  settings: ReadonlyMap<AgentName, AgentSettings>,
): Promise<ReadonlySet<string>> {
  if ([...settings.values()].every(({ subAgents }) => !subAgents?.length)) return new Set();
  const { share, path } = subAgentsFolder;
  const [shipped, written] = await Promise.all([loadShipped(), new Files(database).list(share, path, null, filesMost)]);
  const paths = [...shipped.keys(), ...written.map((file) => file.path)];
  return new Set(paths.filter((file) => file.startsWith(`${path}/`)).map((file) => basename(file, ".md")));
}

/** config.yaml makes agents once, and gives permissions wherever nobody has set others by hand. */
const differences = (
  config: CheckSetting["config"],
  permissions: readonly string[],
  settings: ReadonlyMap<AgentName, AgentSettings>,
  known: ReadonlySet<AgentName>,
): Finding => {
  const lines = config.agents.flatMap(({ name, settings: configured }) => {
    const stored = settings.get(name);
    if (!known.has(name) || stored === undefined) return [];
    const fields = (Object.keys(configured) as (keyof AgentSettings)[]).filter(
      (field) => !isDeepStrictEqual(configured[field], stored[field]),
    );
    return fields.length > 0 ? [`agent ${name}: ${fields.join(", ")}`] : [];
  });
  const all = [...lines, ...permissions];
  if (all.length === 0) return ok("differences", "config.yaml and the database agree.");
  return warning(
    "differences",
    `the database counts, and is not as config.yaml: ${all.join("; ")}.`,
    "Nothing, if that was meant. config.yaml only makes agents that are not there yet (change them by their agent.json), and permissions set by hand stay (!permission).",
  );
};
