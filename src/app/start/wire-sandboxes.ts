import type { Database } from "../../adapters/database/connection.ts";
import { openHost } from "../../adapters/sandbox/open-host.ts";
import { Workspace } from "../../adapters/sandbox/workspace.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxFiles } from "../../domain/files/sandbox-share.ts";
import { Browsers } from "../../domain/sandboxes/browsers.ts";
import { CommandJournal } from "../../domain/sandboxes/command-journal.ts";
import { HostPorts } from "../../domain/sandboxes/host-ports.ts";
import { PageRenderer } from "../../domain/sandboxes/page-renderer.ts";
import { SandboxKeeper } from "../../domain/sandboxes/sandbox-keeper.ts";
import { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import { SandboxCommandTable } from "../../domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../domain/tables/sandboxes.ts";
import type { Config } from "../config/config.ts";

interface Setting {
  readonly config: Pick<Config, "homeserver" | "sandbox"> & {
    readonly bridge: Pick<Config["bridge"], "instance">;
    readonly web: Pick<Config["web"], "allow">;
  };
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ties together the computers of conversations. */
export function wireSandboxes({ config, database, clock, log }: Setting) {
  const { bridge, homeserver, sandbox: settings, web } = config;
  const sandboxTable = new SandboxTable(database);
  const table = new SandboxCommandTable(database);
  const host = settings.engine && openHost(settings.engine, clock);
  const of = `${homeserver.serverName} ${homeserver.url}`;
  const sandboxes = new Sandboxes({ host, settings, table: sandboxTable, homeserver: of, clock, log });
  const sandboxCommands = new CommandJournal({ sandboxes, table, sandboxTable, clock, log });
  const { selfTest } = sandboxes;
  const id = Buffer.from(digest("pages", of, bridge.instance), "base64url")
    .toString("hex")
    .slice(0, 24);
  const name = `clevernet-pages-${id}`;
  const renderer = new PageRenderer({ host, settings, selfTest, name, allow: web.allow, clock, log });
  const sandboxKeeper = new SandboxKeeper({ sandboxes, renderer, journal: sandboxCommands, table, clock, log });
  const sandboxFiles = (conversation: Conversation): SandboxFiles => ({
    open: async () => new Workspace(await sandboxes.use(conversation)),
    sources: async () => (await sandboxTable.sources(conversation)).filter((source) => source !== conversation.roomId),
    hold: (sources) => sandboxTable.hold(conversation, sources),
  });
  const [browsers, hostPorts] = [new Browsers(sandboxes), new HostPorts(sandboxes)];
  const services = { sandboxes, sandboxCommands, browsers, hostPorts };
  return {
    services,
    renderer: settings.engine && renderer,
    sandboxFiles: settings.engine && sandboxFiles,
    sandboxKeeper,
  };
}
