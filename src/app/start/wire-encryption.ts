import type { Database } from "../../adapters/database/connection.ts";
import type { Leases } from "../../adapters/database/leases.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { agentName } from "../../adapters/matrix/message.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { Machines } from "../../domain/crypto/machines.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { CryptoMachines } from "../../domain/tables/crypto-machines.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { SealedEvents } from "../../domain/tables/sealed-events.ts";
import { secrecyOf } from "../../domain/tables/secrecy.ts";
import { Sealing } from "../../edges/delivery/sealing.ts";
import { DeviceKeeper } from "../../edges/routing/device-keeper.ts";
import { SealedKeeper } from "../../edges/routing/sealed-keeper.ts";
import { Unsealing } from "../../edges/routing/unsealing.ts";

interface Setting {
  readonly database: Database;
  readonly client: MatrixClient;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly outbox: Outbox;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly leases: Leases;
  readonly notifier: Notifier;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly maxOpenDevices: number;
  readonly onCommitted: (milliseconds: number) => void;
  readonly onShared: () => void;
  readonly onUnsealed: (outcome: string) => void;
  readonly devicesRenewed: { inc(): void };
  readonly tellOperators: (text: string, key: string) => void;
  readonly onStored: (roomIds: readonly RoomId[]) => void;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Ties together what agents need to read and to write in encrypted rooms. */
export function wireEncryption(setting: Setting) {
  const { database } = setting;
  const machines: Machines = new Machines({
    ...setting,
    most: setting.maxOpenDevices,
    session: setting.leases.session,
    onKeys: (keys) => sealedKeeper.keysCame(keys),
    onRenewed(userId, { before, now }, why) {
      setting.devicesRenewed.inc();
      const name = agentName(userId, setting.serverName);
      if (name !== undefined) setting.directory.forget(name);
      setting.tellOperators(
        `${userId} has a new device for encrypted rooms, ${inlineCode(now)} in place of ${inlineCode(before)}: ${why}. It is signed as the old one was. What waited for a key that was given to the old one will not be read.`,
        `device ${now}`,
      );
    },
  });
  setting.client.onDeviceMade = (device) => machines.lost(device);
  const sealed = new SealedEvents(database);
  const table = new CryptoMachines(database);
  const kindOf = (userId: UserId) => {
    if (userId === setting.client.botUserId) return "bot";
    return agentName(userId, setting.serverName) === undefined ? "human" : "agent";
  };
  const sealedKeeper = new SealedKeeper({
    ...setting,
    machines,
    sealed,
    devices: table,
    kindOf,
    onReleased: setting.onStored,
  });
  const devices = new DeviceKeeper({ ...setting, machines, table });
  return {
    machines,
    commanded: {
      find: (userId: UserId) => table.find(userId),
      fingerprint: (userId: UserId) => machines.run(userId, async (machine) => machine.fingerprint),
      async renew(userId: UserId): Promise<void> {
        await machines.renew(userId);
        devices.nudge();
      },
    },
    sealedKeeper,
    sealing: new Sealing({ ...setting, machines, table, secrecyOf: (roomId) => secrecyOf(database, roomId) }),
    unsealing: new Unsealing({ ...setting, machines, sealed }),
    devices,
  };
}
