import type { Database } from "../../adapters/database/connection.ts";
import { openHost } from "../../adapters/sandbox/open-host.ts";
import { Workspace } from "../../adapters/sandbox/workspace.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { AgentName, Conversation } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { SandboxFiles } from "../../domain/files/sandbox-share.ts";
import { Browsers } from "../../domain/sandboxes/browsers.ts";
import { CommandJournal } from "../../domain/sandboxes/command-journal.ts";
import { HostPorts } from "../../domain/sandboxes/host-ports.ts";
import { SandboxKeeper } from "../../domain/sandboxes/sandbox-keeper.ts";
import { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import { SandboxCommandTable } from "../../domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../domain/tables/sandboxes.ts";
import type { Config } from "../config/config.ts";

interface Setting {
  readonly config: Pick<Config, "homeserver" | "sandbox">;
  readonly database: Database;
  readonly directory: Pick<AgentDirectory, "findRecent">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ties together the computers of conversations. */
export function wireSandboxes({ config, database, directory, clock, log }: Setting) {
  const { homeserver, sandbox: settings } = config;
  const sandboxTable = new SandboxTable(database);
  const table = new SandboxCommandTable(database);
  const host = settings.engine && openHost(settings.engine, clock);
  const of = `${homeserver.serverName} ${homeserver.url}`;
  const networkOf = async (agent: AgentName) => (await directory.findRecent(agent))?.settings.network ?? null;
  const sandboxes = new Sandboxes({ host, settings, table: sandboxTable, homeserver: of, networkOf, clock, log });
  const sandboxCommands = new CommandJournal({ sandboxes, table, sandboxTable, clock, log });
  const sandboxFiles = (conversation: Conversation): SandboxFiles => ({
    open: async () => new Workspace(await sandboxes.use(conversation)),
    sources: async () => (await sandboxTable.sources(conversation)).filter((source) => source !== conversation.roomId),
    hold: (sources) => sandboxTable.hold(conversation, sources),
  });
  const [browsers, hostPorts] = [new Browsers(sandboxes), new HostPorts(sandboxes)];
  const sandboxKeeper = new SandboxKeeper({ sandboxes, journal: sandboxCommands, hostPorts, table, clock, log });
  const services = { sandboxes, sandboxCommands, browsers, hostPorts };
  return { services, sandboxFiles: settings.engine && sandboxFiles, sandboxKeeper };
}
