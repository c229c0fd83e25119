import type { Leases } from "../../adapters/database/leases.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { Machines } from "../../domain/crypto/machines.ts";
import type { CryptoMachines } from "../../domain/tables/crypto-machines.ts";

/** Devices that could not be made are tried again after this. */
const againAfterMs = 30_000;

interface DeviceKeeperParts {
  readonly directory: Pick<AgentDirectory, "all">;
  readonly machines: Pick<Machines, "run">;
  readonly table: Pick<CryptoMachines, "findForgetful" | "findUnpublished">;
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

  /** Devices that were lost with the database are there again, before anybody is answered; others follow. */
  async start(): Promise<void> {
    const { directory, leases, log, table } = this.#parts;
    leases.onGain(() => this.nudge());
    const ours = (await directory.all()).map(({ userId }) => userId).filter((userId) => leases.holds(userId));
    for (const userId of await table.findForgetful(ours))
      await this.#make(userId).catch((error: unknown) => log.warn(`a device is made later: ${messageOf(error)}`));
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
    const { directory, leases, table } = this.#parts;
    const ours = (await directory.all()).map(({ userId }) => userId).filter((userId) => leases.holds(userId));
    for (const userId of await table.findUnpublished(ours)) {
      if (this.#stopped.signal.aborted) return;
      await this.#make(userId);
    }
  }

  /** One that is of no use is put away at the first attempt, and made at the second. */
  async #make(userId: UserId): Promise<void> {
    const open = () => this.#parts.machines.run(userId, async () => {});
    await open().catch((error: unknown) => {
      if (error instanceof RetryError) return open();
      throw error;
    });
  }
}
