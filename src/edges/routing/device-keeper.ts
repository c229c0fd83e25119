import type { Leases } from "../../adapters/database/leases.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { Machines } from "../../domain/crypto/machines.ts";
import type { CryptoMachines } from "../../domain/tables/crypto-machines.ts";

/** Devices that could not be made are tried again after this. */
const againAfterMs = 30_000;

interface DeviceKeeperParts {
  readonly directory: Pick<AgentDirectory, "all">;
  readonly machines: Pick<Machines, "run">;
  readonly table: Pick<CryptoMachines, "unpublished">;
  readonly leases: Pick<Leases, "holds" | "onGain">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Gives every agent a device that can be written to, before anybody writes to it: what was encrypted for others alone
 * it will never read. One after the other, beside everything else.
 */
export class DeviceKeeper {
  readonly #parts: DeviceKeeperParts;
  readonly #stopped = new AbortController();
  #nudged = Promise.withResolvers<void>();
  #working: Promise<void> = Promise.resolve();

  constructor(parts: DeviceKeeperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#parts.leases.onGain(() => this.nudge());
    this.#working = this.#work();
  }

  /** There may be a new agent. */
  nudge(): void {
    this.#nudged.resolve();
    this.#nudged = Promise.withResolvers();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.nudge();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      const nudged = this.#nudged.promise;
      try {
        await this.#makeAll();
        await nudged;
      } catch (error) {
        log.warn(`devices of agents are made later: ${messageOf(error)}`);
        await Promise.race([nudged, clock.sleep(againAfterMs, this.#stopped.signal).catch(() => {})]);
      }
    }
  }

  async #makeAll(): Promise<void> {
    const { directory, leases, machines, table } = this.#parts;
    const ours = (await directory.all()).map(({ userId }) => userId).filter((userId) => leases.holds(userId));
    for (const userId of await table.unpublished(ours)) {
      if (this.#stopped.signal.aborted) return;
      await machines.run(userId, async () => {});
    }
  }
}
