import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { CryptoMachineRow, CryptoMachines } from "../tables/crypto-machines.ts";
import type { CryptoRows } from "../tables/crypto-rows.ts";
import type { StoredEvent } from "../tables/events.ts";
import { BatchedRows } from "./batched-rows.ts";
import type { Device } from "./device.ts";
import type { RowStore } from "./idb-transaction.ts";
import { type Olm, openOlm } from "./olm.ts";
import { publish } from "./publish.ts";
import { type Pulled, pull } from "./pull.ts";
import { type SealedRoom, seal } from "./seal.ts";
import { type Unsealed, unseal } from "./unseal.ts";

/** A key that came: the events of this session can be read now. */
export interface RoomKey {
  readonly roomId: RoomId;
  readonly sessionId: string;
}

export interface MachineParts {
  readonly client: Pick<MatrixClient, "request" | "register" | "putDevice">;
  readonly table: Pick<CryptoMachines, "markPulled" | "markPublished">;
  readonly onKeys: (keys: readonly RoomKey[]) => void;
  /** Something was given to other devices. */
  readonly onShared: () => void;
  /** The store has written something, in this time. */
  readonly onCommitted: (milliseconds: number) => void;
  readonly clock: Pick<Clock, "monotonic">;
}

/**
 * An agent's device, open. Its calls may not overlap. After an error of its store its memory is ahead of the store: it
 * has to be closed then, and opened again.
 */
export class Machine {
  readonly #row: CryptoMachineRow;
  readonly #parts: MachineParts;
  readonly #olm: Olm;
  readonly #store: WatchedRows;
  readonly #batches: BatchedRows;
  readonly #device: Device;
  #pulled: Partial<Pulled>;
  /** Rooms in which this machine has begun a session of its own: an older one may have been used since. */
  readonly #begun = new Set<RoomId>();

  private constructor(parts: MachineParts, row: CryptoMachineRow, olm: Olm, memory: Memory) {
    this.#parts = parts;
    this.#row = row;
    this.#olm = olm;
    this.#store = memory.store;
    this.#batches = memory.batches;
    this.#device = {
      userId: row.userId,
      deviceId: row.deviceId,
      machine: olm.machine,
      client: parts.client,
      onShared: parts.onShared,
    };
    this.#pulled = row.since === null ? {} : { since: row.since };
    olm.machine.registerRoomKeyUpdatedCallback(async (keys) =>
      parts.onKeys(keys.map(({ roomId, sessionId }) => ({ roomId: roomId.toString() as RoomId, sessionId }))),
    );
  }

  /** Opens a device, and makes it one that people can write to where it is none yet. */
  static async open(parts: MachineParts, row: CryptoMachineRow, rows: CryptoRows): Promise<Machine> {
    const store = new WatchedRows(rows, parts);
    const batches = new BatchedRows(store);
    const olm = await openOlm(row.userId, row.deviceId, batches).catch((error: unknown) => {
      throw store.failure ?? error;
    });
    const machine = new Machine(parts, row, olm, { store, batches });
    try {
      if (!row.isPublished) await machine.#publish();
      return machine;
    } catch (error) {
      machine.close();
      throw store.failure ?? error;
    }
  }

  get userId(): UserId {
    return this.#row.userId;
  }

  get deviceId(): string {
    return this.#row.deviceId;
  }

  get epoch(): number {
    return this.#row.epoch;
  }

  /** By which people know the device: it is in their clients' lists. */
  get fingerprint(): string {
    return this.#olm.machine.identityKeys.ed25519.toBase64();
  }

  /** Error of its store, after which it may not be used any more. */
  get failure(): RetryError | undefined {
    return this.#store.failure;
  }

  /** Takes what has come for the device. */
  async pull(): Promise<void> {
    this.#pulled = await pull(this.#device, this.#pulled, {
      together: (work) => this.#batches.together(work),
      pulled: (since) => this.#parts.table.markPulled(this.#row, since),
    });
  }

  /** Reads an event with the keys that are there. */
  unseal(event: StoredEvent): Promise<Unsealed> {
    return unseal(this.#device, event);
  }

  /** Encrypts an event; its content stands in the ciphertext alone. */
  async seal(room: SealedRoom, inner: { readonly type: string; readonly content: Readonly<Record<string, unknown>> }) {
    await this.pull();
    const sealed = await seal(this.#device, room, inner, !this.#begun.has(room.roomId));
    this.#begun.add(room.roomId);
    return sealed;
  }

  close(): void {
    this.#olm.close();
  }

  async #publish(): Promise<void> {
    const { client, table } = this.#parts;
    await client.register(this.userId);
    await client.putDevice(this.userId, this.deviceId);
    await table.markPublished(this.#row, await publish(this.#device, this.#row.identity));
  }
}

interface Memory {
  readonly store: WatchedRows;
  readonly batches: BatchedRows;
}

/** Remembers that the store has failed: the machine's own words for it say little. */
class WatchedRows implements RowStore {
  readonly #rows: CryptoRows;
  readonly #parts: Pick<MachineParts, "clock" | "onCommitted">;
  failure: RetryError | undefined;

  constructor(rows: CryptoRows, parts: Pick<MachineParts, "clock" | "onCommitted">) {
    this.#rows = rows;
    this.#parts = parts;
  }

  load(except: readonly string[]) {
    return this.#watch(this.#rows.load(except));
  }

  find(store: string, key: string) {
    return this.#watch(this.#rows.find(store, key));
  }

  all(store: string) {
    return this.#watch(this.#rows.all(store));
  }

  async write(rows: Parameters<RowStore["write"]>[0]) {
    if (this.failure) throw this.failure;
    const begun = this.#parts.clock.monotonic();
    await this.#watch(this.#rows.write(rows));
    this.#parts.onCommitted(this.#parts.clock.monotonic() - begun);
  }

  async #watch<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      this.failure =
        error instanceof RetryError ? error : new RetryError(`the store of a device has failed: ${messageOf(error)}`);
      throw error;
    }
  }
}
