import type { Database } from "../../adapters/database/connection.ts";
import { BackupStore } from "../../adapters/sandbox/backup-store.ts";
import { openHost } from "../../adapters/sandbox/open-host.ts";
import { Workspace } from "../../adapters/sandbox/workspace.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { type AgentName, type Conversation, digest, HOME, type RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { SandboxFiles } from "../../domain/files/sandbox-share.ts";
import { Backups } from "../../domain/sandboxes/backups.ts";
import { Browsers } from "../../domain/sandboxes/browsers.ts";
import { CommandJournal } from "../../domain/sandboxes/command-journal.ts";
import { DiskWatch } from "../../domain/sandboxes/disk-watch.ts";
import { HostPorts } from "../../domain/sandboxes/host-ports.ts";
import { PageRenderer } from "../../domain/sandboxes/page-renderer.ts";
import type { Tell } from "../../domain/sandboxes/placing.ts";
import { SandboxCollector } from "../../domain/sandboxes/sandbox-collector.ts";
import { SandboxKeeper } from "../../domain/sandboxes/sandbox-keeper.ts";
import { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import { SandboxCommandTable } from "../../domain/tables/sandbox-commands.ts";
import { SandboxPlacements } from "../../domain/tables/sandbox-placements.ts";
import { SandboxTable } from "../../domain/tables/sandboxes.ts";
import type { Config } from "../config/config.ts";

interface Setting {
  readonly config: Pick<Config, "homeserver" | "sandbox"> & {
    readonly bridge: Pick<Config["bridge"], "instance">;
    readonly web: Pick<Config["web"], "allow">;
  };
  readonly database: Database;
  readonly directory: Pick<AgentDirectory, "findRecent">;
  readonly outbox: Pick<Outbox, "add">;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ties together the computers of conversations. */
export function wireSandboxes({ config, database, directory, outbox, onOutbox, clock, log }: Setting) {
  const { bridge, homeserver, sandbox: settings, web } = config;
  const sandboxTable = new SandboxTable(database);
  const table = new SandboxCommandTable(database);
  const hosts = settings.hosts.map((host) => ({ ...host, host: openHost(host.engine, clock) }));
  const placements = new SandboxPlacements(database);
  const { folder, maxMegabytes = 0 } = settings.backups ?? {};
  const store = folder === undefined ? undefined : new BackupStore(folder);
  const backups = store && new Backups({ store, table: placements, maxMegabytes, log });
  const of = `${homeserver.serverName} ${homeserver.url}`;
  const tell: Tell = async ({ agent, roomId }, text, key) => {
    const sender = (await directory.findRecent(agent))?.userId;
    if (roomId === HOME || sender === undefined) return;
    await outbox.add(utter({ sender, roomId, text, isNotice: true, key }));
    onOutbox([roomId]);
  };
  const networkOf = async (agent: AgentName) => (await directory.findRecent(agent))?.settings.network ?? null;
  const sandboxes = new Sandboxes({
    hosts,
    settings,
    table: sandboxTable,
    placements,
    backups,
    homeserver: of,
    networkOf,
    tell,
    clock,
    log,
  });
  const shared = { sandboxes, backups, clock, log };
  const collector = new SandboxCollector({ ...shared, table: sandboxTable });
  const diskWatch = new DiskWatch({ ...shared, table: sandboxTable, limits: settings.disk, tell });
  const sandboxCommands = new CommandJournal({ sandboxes, table, sandboxTable, clock, log });
  const id = Buffer.from(digest("pages", of, bridge.instance), "base64url")
    .toString("hex")
    .slice(0, 24);
  const [first] = sandboxes.pool.all;
  const pages = { settings, name: `clevernet-pages-${id}`, allow: web.allow, clock, log };
  const renderer = first && new PageRenderer({ ...pages, host: first.host, selfTest: first.selfTest });
  const sandboxFiles = (conversation: Conversation): SandboxFiles => ({
    open: async () => new Workspace(await sandboxes.use(conversation)),
    sources: async () => (await sandboxTable.sources(conversation)).filter((source) => source !== conversation.roomId),
    hold: (sources) => sandboxTable.hold(conversation, sources),
  });
  const [browsers, hostPorts] = [new Browsers(sandboxes), new HostPorts(sandboxes)];
  const sandboxKeeper = new SandboxKeeper({
    ...shared,
    renderer,
    collector,
    diskWatch,
    placements,
    journal: sandboxCommands,
    hostPorts,
    table,
    sandboxTable,
  });
  const services = { sandboxes, sandboxCommands, browsers, hostPorts };
  return { services, renderer, sandboxFiles: hosts.length > 0 ? sandboxFiles : undefined, sandboxKeeper };
}
