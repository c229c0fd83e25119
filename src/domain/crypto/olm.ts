import { DeviceId, initAsync, OlmMachine, UserId as OlmUserId, StoreHandle } from "@matrix-org/matrix-sdk-crypto-wasm";
import type { UserId } from "../../base/lib/ids.ts";
import { installStore, mount } from "./idb.ts";
import type { RowStore } from "./idb-transaction.ts";

/** A device of ours in the protocol's own terms. */
export interface Olm {
  readonly machine: OlmMachine;
  /** Lets go of its memory; nothing may be under way. */
  close(): void;
}

let loading: Promise<void> | undefined;

const load = (): Promise<void> => {
  if (!loading) {
    installStore();
    loading = initAsync();
  }
  return loading;
};

/** Opens a device with the memory that is in `rows`, which no other may use as long as it is open. */
export async function openOlm(userId: UserId, deviceId: string, rows: RowStore): Promise<Olm> {
  await load();
  const name = `${userId} ${deviceId}`;
  const unmount = mount(name, rows);
  try {
    const store = await StoreHandle.open(name, undefined);
    const machine = await OlmMachine.initFromStore(new OlmUserId(userId), new DeviceId(deviceId), store);
    store.free();
    // People's clients give keys to their own other devices only.
    machine.roomKeyRequestsEnabled = false;
    return {
      machine,
      close() {
        machine.close();
        unmount();
      },
    };
  } catch (error) {
    unmount();
    throw error;
  }
}
