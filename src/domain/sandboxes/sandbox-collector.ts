import { HostError } from "../../adapters/sandbox/host.ts";
import type { Log } from "../../base/lib/log.ts";
import type { SandboxTable } from "../tables/sandboxes.ts";
import type { Backups } from "./backups.ts";
import type { PooledHost } from "./host-pool.ts";
import type { Sandboxes } from "./sandboxes.ts";

/** A container of this installation that belongs to no conversation. */
export interface Orphan {
  readonly at: PooledHost;
  readonly name: string;
}

interface CollectorParts {
  readonly sandboxes: Sandboxes;
  readonly table: SandboxTable;
  readonly backups: Backups | undefined;
  readonly log: Log;
}

/** Removes sandboxes that nobody needs any more. */
export class SandboxCollector {
  readonly #parts: CollectorParts;

  constructor(parts: CollectorParts) {
    this.#parts = parts;
  }

  /** Removes those whose conversation is over. Those on a host that is away are removed when it is back. */
  async removeAbandoned(): Promise<void> {
    const { backups, log, sandboxes, table } = this.#parts;
    for (const row of await table.findAbandoned()) {
      const at = sandboxes.placing.hostOf(row);
      if (!at && sandboxes.pool.get(row.host)) continue;
      log.info({ agent: row.agent, room: row.roomId }, "a sandbox is removed: its conversation is over");
      if (at) await sandboxes.removeFrom(at, row.name);
      await backups?.remove(row.name);
      await table.markEmpty(row);
      await table.remove(row);
    }
  }

  /** Finds those that belong to no conversation, on all hosts that answer. */
  async findOrphans(): Promise<Orphan[]> {
    const { sandboxes, table } = this.#parts;
    const label = await sandboxes.names.label();
    const orphans: Orphan[] = [];
    for (const at of sandboxes.pool.all) {
      const found = await at.look(label).catch((error: unknown) => {
        if (error instanceof HostError) return [];
        throw error;
      });
      const known = await table.hosts();
      orphans.push(...found.filter(({ id }) => !known.has(id)).map(({ id }) => ({ at, name: id })));
    }
    return orphans;
  }

  async remove({ at, name }: Orphan): Promise<void> {
    this.#parts.log.info({ sandbox: name }, "a sandbox is removed: it belongs to no conversation");
    await this.#parts.sandboxes.removeFrom(at, name);
  }
}
