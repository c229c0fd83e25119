import type { Database } from "../../adapters/database/connection.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import { secret, type UserId } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { Log } from "../../base/lib/log.ts";
import { type CryptoMachineRow, CryptoMachines } from "../tables/crypto-machines.ts";
import { CryptoRows, NotOwner } from "../tables/crypto-rows.ts";
import { Machine, type MachineParts } from "./machine.ts";
import { OtherKeys } from "./publish.ts";

interface MachinesParts extends Pick<MachineParts, "onCommitted" | "onKeys" | "onShared"> {
  readonly database: Database;
  readonly client: Pick<MatrixClient, "request" | "register" | "putDevice">;
  readonly log: Log;
  /** Limit of open machines. */
  readonly most: number;
  /** Names this process among those that share the database. */
  readonly session: string;
  readonly notifier: Pick<Notifier, "tell" | "on">;
  readonly clock: Clock;
  /** Called when an agent got another device; `why`: the reason why the old one was useless. */
  readonly onRenewed: (userId: UserId, devices: { readonly before: string; readonly now: string }, why: string) => void;
}

/** Time that a living process has to give up a device that it has open. */
const patienceMs = 5_000;
const lookAgainMs = 100;

type Job<Result> = (machine: Machine) => Promise<Result>;
type DeviceName = Pick<CryptoMachineRow, "userId" | "deviceId">;

/** Devices of our agents: opened when they are first needed, one call at a time for each. */
export class Machines {
  readonly #parts: MachinesParts;
  readonly #table: CryptoMachines;
  readonly #jobs = new InTurn<UserId>();
  /** Open machines, the longest unused first. */
  readonly #open = new Map<UserId, Machine>();
  /** Resolves when another process may have given a device up. */
  #word = Promise.withResolvers<void>();
  /** Devices that the homeserver had forgotten. */
  readonly #lost = new Map<UserId, string>();

  constructor(parts: MachinesParts) {
    this.#parts = parts;
    this.#table = new CryptoMachines(parts.database);
    parts.notifier.on("devices", (users) => {
      for (const userId of users ?? []) this.#giveUp(userId as UserId);
      this.#word.resolve();
      this.#word = Promise.withResolvers();
    });
  }

  /** Number of open machines. */
  get size(): number {
    return this.#open.size;
  }

  /**
   * Does a job with an agent's device when nobody else uses it; opens the device if necessary. The job is done again if
   * another process took the device over in the middle of it.
   * @throws RetryError if the store fails, or the device had to be replaced; HomeserverError if the homeserver fails or
   * refuses
   */
  run<Result>(userId: UserId, job: Job<Result>): Promise<Result> {
    return this.#jobs.run([userId], async () => {
      try {
        return await this.#once(userId, job);
      } catch (error) {
        if (!(error instanceof NotOwner)) throw error;
        return this.#once(userId, job);
      }
    });
  }

  /** The homeserver had forgotten the device, and with it its keys. */
  lost({ userId, deviceId }: DeviceName): void {
    this.#lost.set(userId, deviceId);
  }

  /** Replaces an agent's device, even one that works. */
  renew(userId: UserId): Promise<void> {
    return this.#jobs.run([userId], async () => {
      const row = await this.#take(userId);
      if (row) await this.#replace(row, "somebody who runs this bridge wants it", true);
    });
  }

  /** The agent is no more: in no process anything of its device stays in memory. */
  forget(userId: UserId): void {
    this.#giveUp(userId);
    this.#parts.notifier.tell("devices", [userId]);
  }

  /** Closes all machines after their running jobs. */
  async close(): Promise<void> {
    await this.#jobs.idle();
    const open = [...this.#open.values()];
    for (const machine of open) this.#closeOne(machine);
    if (open.length > 0) await this.#table.release(open);
  }

  /** Takes the device over, after its process has finished its job with it. */
  async #take(userId: UserId): Promise<CryptoMachineRow | undefined> {
    const { clock, notifier, session } = this.#parts;
    const until = clock.monotonic() + patienceMs;
    for (;;) {
      const isForced = clock.monotonic() >= until;
      const word = this.#word.promise;
      const row = await this.#table.open(userId, session, isForced);
      if (row || isForced) return row;
      notifier.tell("devices", [userId]);
      await Promise.race([word, clock.sleep(lookAgainMs)]);
    }
  }

  /** Leaves a device to another process that waits for it. */
  #giveUp(userId: UserId): void {
    const { log, notifier } = this.#parts;
    if (!this.#open.has(userId)) return;
    const giving = this.#jobs.run([userId], async () => {
      const machine = this.#open.get(userId);
      if (!machine) return;
      this.#closeOne(machine);
      await this.#table.release([machine]);
      notifier.tell("devices");
    });
    giving.catch((error: unknown) => log.info(`the device of ${userId} is given up by force: ${messageOf(error)}`));
  }

  async #once<Result>(userId: UserId, job: Job<Result>): Promise<Result> {
    const machine = this.#open.get(userId) ?? (await this.#openOne(userId));
    // This makes it the last one used.
    this.#open.delete(userId);
    this.#open.set(userId, machine);
    try {
      const result = await job(machine);
      if (this.#lost.get(userId) === machine.deviceId) throw new ForgottenDevice();
      return result;
    } catch (thrown) {
      const error = machine.failure ?? thrown;
      if (machine.failure || error instanceof NotOwner) this.#closeOne(machine);
      const why = reasonToRenew(error);
      if (why === undefined) throw error;
      return await this.#renew(machine, why);
    } finally {
      this.#closeUnused();
    }
  }

  async #openOne(userId: UserId): Promise<Machine> {
    const row = await this.#take(userId);
    if (!row) throw new Error(`${userId} is no agent, and has no device`);
    if (row.isForgetful) return this.#renew(row, "the database does not remember it");
    const rows = new CryptoRows(this.#parts.database, userId, row.epoch);
    return Machine.open({ ...this.#parts, table: this.#table }, row, rows).catch((error: unknown) => {
      const why = reasonToRenew(error) ?? (isOutside(error) ? undefined : `its store is damaged: ${messageOf(error)}`);
      if (why === undefined) throw error;
      return this.#renew(row, why);
    });
  }

  /** Replaces a device by another one under the agent's old identity: people see no difference. */
  async #replace(device: DeviceName, why: string, isWanted: boolean): Promise<void> {
    const { userId, deviceId: before } = device;
    const { client, log, onRenewed } = this.#parts;
    const open = this.#open.get(userId);
    if (open) this.#closeOne(open);
    const now = `CLEVERNET${secret(4).toUpperCase()}`;
    if (!(await this.#table.renew(device, now, isWanted)))
      throw new RetryError(`the device of ${userId} is of no use (${why}), and is not made anew again so soon`);
    this.#lost.delete(userId);
    log.warn({ userId, before, now }, `a device was made anew: ${why}`);
    onRenewed(userId, { before, now }, why);
    const path = `/_matrix/client/v3/devices/${encodeURIComponent(before)}`;
    // If it stays, it is a device that nobody reads.
    await client
      .request("DELETE", path, { as: { userId }, body: {} })
      .catch((error: unknown) => log.info(`the old device of ${userId} stays: ${messageOf(error)}`));
  }

  /** @throws RetryError always: the job is repeated with the new device */
  async #renew(device: DeviceName, why: string): Promise<never> {
    await this.#replace(device, why, false);
    throw new RetryError(`${device.userId} has a new device`);
  }

  #closeOne(machine: Machine): void {
    this.#open.delete(machine.userId);
    machine.close();
  }

  #closeUnused(): void {
    for (const machine of this.#open.values()) {
      if (this.#open.size <= this.#parts.most) return;
      if (!this.#jobs.isBusy(machine.userId)) this.#closeOne(machine);
    }
  }
}

class ForgottenDevice extends Error {}

/** Errors of the store or the homeserver, which say nothing about the device. */
const isOutside = (error: unknown): boolean => error instanceof RetryError || error instanceof HomeserverError;

/** Says why this error makes a device useless; undefined: the device may still work. */
function reasonToRenew(error: unknown): string | undefined {
  if (error instanceof ForgottenDevice) return "the homeserver had forgotten it";
  if (error instanceof OtherKeys) return "its keys are not those that the homeserver has";
  // The device is older than the homeserver's knowledge of it.
  if (error instanceof HomeserverError && error.status === 400 && /one time key .* already exists/i.test(error.message))
    return "the database was set back";
  return undefined;
}
