import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { SandboxCommandTable } from "../tables/sandbox-commands.ts";
import type { SandboxPlacements } from "../tables/sandbox-placements.ts";
import type { RestingSandbox, SandboxTable } from "../tables/sandboxes.ts";
import type { Backups } from "./backups.ts";
import type { CommandJournal } from "./command-journal.ts";
import type { DiskWatch } from "./disk-watch.ts";
import type { HostPorts } from "./host-ports.ts";
import type { PageRenderer } from "./page-renderer.ts";
import type { SandboxCollector } from "./sandbox-collector.ts";
import type { Sandboxes } from "./sandboxes.ts";

const roundMs = 30_000;
const collectMs = 3_600_000;
const backupEverySeconds = 900;
const backupSeconds = 240;

interface SandboxKeeperParts {
  readonly sandboxes: Sandboxes;
  /** Ends with the others. */
  readonly renderer?: Pick<PageRenderer, "clear" | "close"> | undefined;
  readonly collector: SandboxCollector;
  readonly diskWatch: DiskWatch;
  readonly backups: Backups | undefined;
  readonly placements: SandboxPlacements;
  readonly journal: CommandJournal;
  readonly hostPorts: Pick<HostPorts, "hasOpen" | "isServing">;
  readonly table: SandboxCommandTable;
  readonly sandboxTable: Pick<SandboxTable, "findResting">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Looks after sandboxes in the background: tests hosts until they can be used, looks whether they answer, stops sandboxes that
 * are idle, backs up those that are not, ends commands that nobody waits for, and removes what belongs to nobody.
 */
export class SandboxKeeper {
  readonly #parts: SandboxKeeperParts;
  readonly #rounds: Rounds;
  #collectedAt: number | undefined;
  /** Belonged to nobody at the last look; only at the second one it is certain that nobody is making them now. */
  #suspects = new Set<string>();

  constructor(parts: SandboxKeeperParts) {
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  start(): void {
    const { diskWatch, log, sandboxes } = this.#parts;
    sandboxes.pool.start();
    diskWatch.start();
    const restMs = Math.min(roundMs, sandboxes.settings.idleSeconds * 500);
    this.#rounds.start(async () => {
      await this.round().catch((error: unknown) => log.warn(`sandboxes are looked after later: ${messageOf(error)}`));
      return restMs;
    });
  }

  async stop(): Promise<void> {
    const { diskWatch, renderer, sandboxes } = this.#parts;
    await Promise.all([this.#rounds.stop(), diskWatch.stop()]);
    await Promise.all([sandboxes.close(), renderer?.close()]);
  }

  async round(): Promise<void> {
    const { clock, journal, sandboxes, table } = this.#parts;
    sandboxes.pool.start();
    if (!sandboxes.isOffered) return;
    await sandboxes.placing.look();
    await journal.endDeserted();
    await this.#markBusy();
    await sandboxes.stopIdle();
    await this.#backUp();
    const isDue = this.#collectedAt === undefined || clock.monotonic() - this.#collectedAt > collectMs;
    if (!isDue && this.#suspects.size === 0) return;
    this.#collectedAt = clock.monotonic();
    await this.#collect();
    await table.forgetOld();
  }

  /** Looks into those that would be stopped soon, as far as something may be going on there. */
  async #markBusy(): Promise<void> {
    const { hostPorts, log, sandboxes, sandboxTable } = this.#parts;
    for (const resting of await sandboxTable.findResting(sandboxes.settings.idleSeconds / 2)) {
      if (!resting.hasBackground && !hostPorts.hasOpen(resting)) continue;
      try {
        if (await this.#isBusy(resting)) await sandboxes.touch(resting, "busy");
      } catch (error) {
        log.debug({ agent: resting.agent }, `it is not known if a sandbox is busy: ${messageOf(error)}`);
      }
    }
  }

  async #isBusy(resting: RestingSandbox): Promise<boolean> {
    const { hostPorts, journal, sandboxes } = this.#parts;
    if (resting.hasBackground && (await journal.isBusy(resting))) return true;
    const sandbox = await sandboxes.running(resting);
    return sandbox !== undefined && hostPorts.isServing(resting, sandbox);
  }

  async #backUp(): Promise<void> {
    const { backups, placements, sandboxes } = this.#parts;
    if (!backups) return;
    for (const row of await placements.claimBackups(backupEverySeconds))
      await backups.keep(row.name, () => sandboxes.open(row), backupSeconds);
  }

  async #collect(): Promise<void> {
    const { collector, renderer } = this.#parts;
    await renderer?.clear();
    await collector.removeAbandoned();
    const orphans = await collector.findOrphans();
    const keyOf = ({ at, name }: (typeof orphans)[number]) => `${at.name} ${name}`;
    for (const orphan of orphans.filter((one) => this.#suspects.has(keyOf(one)))) await collector.remove(orphan);
    this.#suspects = new Set(orphans.map(keyOf).filter((key) => !this.#suspects.has(key)));
  }
}
