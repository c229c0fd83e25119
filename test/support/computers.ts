import { inject } from "vitest";
import type { Database } from "../../src/adapters/database/connection.ts";
import { BackupStore } from "../../src/adapters/sandbox/backup-store.ts";
import type { SandboxHost } from "../../src/adapters/sandbox/host.ts";
import type { SandboxSettings } from "../../src/adapters/sandbox/open-host.ts";
import { sandboxSection, sandboxSettings } from "../../src/app/config/sandbox.ts";
import type { Clock } from "../../src/base/lib/clock.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { Conversation } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { Backups } from "../../src/domain/sandboxes/backups.ts";
import { CommandJournal, type CommandWait, type SandboxCall } from "../../src/domain/sandboxes/command-journal.ts";
import { DiskWatch } from "../../src/domain/sandboxes/disk-watch.ts";
import type { HostEntry } from "../../src/domain/sandboxes/host-pool.ts";
import { HostPorts } from "../../src/domain/sandboxes/host-ports.ts";
import { SandboxCollector } from "../../src/domain/sandboxes/sandbox-collector.ts";
import { SandboxKeeper } from "../../src/domain/sandboxes/sandbox-keeper.ts";
import { Sandboxes } from "../../src/domain/sandboxes/sandboxes.ts";
import { SandboxCommandTable } from "../../src/domain/tables/sandbox-commands.ts";
import { SandboxPlacements } from "../../src/domain/tables/sandbox-placements.ts";
import { SandboxTable } from "../../src/domain/tables/sandboxes.ts";
import { newKey } from "./rows.ts";
import { localHost } from "./sandbox-host.ts";

export interface ComputerOptions {
  /** Another installation on the same machine, where the database is the same. */
  readonly homeserver: string;
  readonly settings?: Partial<SandboxSettings>;
  readonly host?: SandboxHost;
  readonly runningMost?: number;
  /** Default: `host` alone. */
  readonly hosts?: readonly HostEntry[];
  /** Folder. */
  readonly backups?: string;
  readonly clock?: Clock;
  /** Hosts that agents allow; default: all that the settings do. */
  readonly network?: readonly string[];
}

/** Services of conversations' computers, as one process has them. */
export class Computers {
  readonly sandboxes: Sandboxes;
  readonly journal: CommandJournal;
  readonly keeper: SandboxKeeper;
  readonly collector: SandboxCollector;
  readonly diskWatch: DiskWatch;
  readonly ports: HostPorts;
  readonly table: SandboxTable;
  readonly commands: SandboxCommandTable;
  readonly host: SandboxHost;
  /** Texts that were said in rooms. */
  readonly said: string[] = [];

  constructor(database: Database, options: ComputerOptions) {
    const { homeserver, host = localHost(), runningMost = 20, clock = systemClock, network = null } = options;
    const sandbox = inject("sandbox");
    if ("missing" in sandbox) throw new Error(sandbox.missing);
    const section = sandboxSection.parse({ kind: "podman", image: sandbox.tools });
    const settings = { ...sandboxSettings(section), ...options.settings };
    this.host = host;
    this.table = new SandboxTable(database);
    this.commands = new SandboxCommandTable(database);
    const placements = new SandboxPlacements(database);
    const shared = { clock, log: silentLog };
    const store = options.backups === undefined ? undefined : new BackupStore(options.backups);
    const backups = store && new Backups({ ...shared, store, table: placements, maxMegabytes: 64 });
    const told = new Set<string>();
    const tell = async (_: Conversation, text: string, key: string) => {
      if (!told.has(key)) this.said.push(text);
      told.add(key);
    };
    this.sandboxes = new Sandboxes({
      ...shared,
      hosts: options.hosts ?? [{ name: "default", host, runningMost }],
      settings,
      table: this.table,
      placements,
      backups,
      homeserver,
      networkOf: async () => network,
      tell,
    });
    const { sandboxes, commands: table } = this;
    this.journal = new CommandJournal({ ...shared, sandboxes, table, sandboxTable: this.table });
    this.ports = new HostPorts(sandboxes);
    this.collector = new SandboxCollector({ ...shared, sandboxes, backups, table: this.table });
    this.diskWatch = new DiskWatch({ ...shared, sandboxes, table: this.table, limits: settings.disk, tell });
    this.keeper = new SandboxKeeper({
      ...shared,
      ...this,
      backups,
      placements,
      table,
      sandboxTable: this.table,
      hostPorts: this.ports,
    });
  }

  /** Runs a command line as a model's call would. */
  run(
    conversation: Conversation,
    command: string,
    call: Partial<SandboxCall> = {},
    waiting: Partial<CommandWait> = {},
  ) {
    return this.journal.run(
      {
        ...conversation,
        key: newKey().replaceAll(" ", "-"),
        command,
        requesters: [],
        sources: [],
        isBackground: false,
        seconds: 60,
        ...call,
      },
      { signal: new AbortController().signal, ...waiting },
    );
  }

  /** Text that a command has written. */
  async out(conversation: Conversation, command: string): Promise<string> {
    return (await this.run(conversation, command)).outcome?.stdout?.text ?? "";
  }

  /** Removes all sandboxes of the installation. */
  async remove(): Promise<void> {
    this.ports.close();
    await this.sandboxes.close();
    const label = await this.sandboxes.names.label();
    for (const at of this.sandboxes.pool.all) for (const { id } of await at.host.find(label)) await at.host.remove(id);
  }
}
