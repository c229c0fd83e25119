import { inject } from "vitest";
import type { Database } from "../../src/adapters/database/connection.ts";
import type { SandboxHost } from "../../src/adapters/sandbox/host.ts";
import type { SandboxSettings } from "../../src/adapters/sandbox/open-host.ts";
import { sandboxSection, sandboxSettings } from "../../src/app/config/sandbox.ts";
import type { Clock } from "../../src/base/lib/clock.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { Conversation } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { CommandJournal, type CommandWait, type SandboxCall } from "../../src/domain/sandboxes/command-journal.ts";
import { HostPorts } from "../../src/domain/sandboxes/host-ports.ts";
import { SandboxKeeper } from "../../src/domain/sandboxes/sandbox-keeper.ts";
import { Sandboxes } from "../../src/domain/sandboxes/sandboxes.ts";
import { SandboxCommandTable } from "../../src/domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../src/domain/tables/sandboxes.ts";
import { newKey } from "./rows.ts";
import { localHost } from "./sandbox-host.ts";

export interface ComputerOptions {
  /** Another installation on the same machine, where the database is the same. */
  readonly homeserver: string;
  readonly settings?: Partial<SandboxSettings>;
  readonly host?: SandboxHost;
  readonly clock?: Clock;
  /** Hosts that agents allow; default: all that the settings do. */
  readonly network?: readonly string[];
}

/** Services of conversations' computers, as one process has them. */
export class Computers {
  readonly sandboxes: Sandboxes;
  readonly journal: CommandJournal;
  readonly keeper: SandboxKeeper;
  readonly ports: HostPorts;
  readonly table: SandboxTable;
  readonly commands: SandboxCommandTable;
  readonly host: SandboxHost;

  constructor(database: Database, options: ComputerOptions) {
    const { homeserver, host = localHost(), clock = systemClock, network = null } = options;
    const sandbox = inject("sandbox");
    if ("missing" in sandbox) throw new Error(sandbox.missing);
    const section = sandboxSection.parse({ kind: "podman", image: sandbox.tools });
    const settings = { ...sandboxSettings(section), ...options.settings };
    this.host = host;
    this.table = new SandboxTable(database);
    this.commands = new SandboxCommandTable(database);
    const log = silentLog;
    const networkOf = async () => network;
    this.sandboxes = new Sandboxes({ host, settings, table: this.table, homeserver, networkOf, clock, log });
    const { sandboxes, commands: table } = this;
    this.journal = new CommandJournal({ sandboxes, table, sandboxTable: this.table, clock, log });
    this.ports = new HostPorts(sandboxes);
    this.keeper = new SandboxKeeper({ sandboxes, journal: this.journal, hostPorts: this.ports, table, clock, log });
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
    const orphans = await this.sandboxes.findOrphans();
    for (const name of new Set([...orphans, ...(await this.table.names())])) await this.sandboxes.removeOrphan(name);
  }
}
