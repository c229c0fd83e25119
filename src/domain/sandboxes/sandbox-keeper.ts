import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { SandboxCommandTable } from "../tables/sandbox-commands.ts";
import type { CommandJournal } from "./command-journal.ts";
import type { PageRenderer } from "./page-renderer.ts";
import type { Sandboxes } from "./sandboxes.ts";

const roundMs = 30_000;
const collectMs = 3_600_000;

interface SandboxKeeperParts {
  readonly sandboxes: Sandboxes;
  /** Ends with the others. */
  readonly renderer?: Pick<PageRenderer, "clear" | "close">;
  readonly journal: CommandJournal;
  readonly table: SandboxCommandTable;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Looks after sandboxes in the background: tests once that they can be used, stops those that are idle, ends commands that
 * nobody waits for, and removes those that belong to nobody.
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
    const { log, sandboxes } = this.#parts;
    sandboxes.selfTest.start();
    const restMs = Math.min(roundMs, sandboxes.settings.idleSeconds * 500);
    this.#rounds.start(async () => {
      await this.round().catch((error: unknown) => log.warn(`sandboxes are looked after later: ${messageOf(error)}`));
      return restMs;
    });
  }

  async stop(): Promise<void> {
    await this.#rounds.stop();
    await Promise.all([this.#parts.sandboxes.close(), this.#parts.renderer?.close()]);
  }

  async round(): Promise<void> {
    const { clock, journal, sandboxes, table } = this.#parts;
    if (sandboxes.selfTest.refusal !== undefined) return;
    await journal.endDeserted();
    await sandboxes.stopIdle();
    const isDue = this.#collectedAt === undefined || clock.monotonic() - this.#collectedAt > collectMs;
    if (!isDue && this.#suspects.size === 0) return;
    this.#collectedAt = clock.monotonic();
    await this.#collect();
    await table.forgetOld();
  }

  async #collect(): Promise<void> {
    const { renderer, sandboxes } = this.#parts;
    await renderer?.clear();
    await sandboxes.removeAbandoned();
    const orphans = await sandboxes.findOrphans();
    for (const name of orphans.filter((one) => this.#suspects.has(one))) await sandboxes.removeOrphan(name);
    this.#suspects = new Set(orphans.filter((one) => !this.#suspects.has(one)));
  }
}
