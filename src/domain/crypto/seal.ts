import {
  CollectStrategy,
  EncryptionSettings,
  HistoryVisibility,
  RoomId as OlmRoomId,
  UserId as OlmUserId,
} from "@matrix-org/matrix-sdk-crypto-wasm";
import type { RoomId } from "../../base/lib/ids.ts";
import type { RoomSecrecy } from "../tables/secrecy.ts";
import { type Device, send, track } from "./device.ts";

/** A room as whoever writes in it has to know it. */
export interface SealedRoom extends RoomSecrecy {
  readonly roomId: RoomId;
}

interface Inner {
  readonly type: string;
  readonly content: Readonly<Record<string, unknown>>;
}

const visibilities: Readonly<Record<string, HistoryVisibility>> = {
  invited: HistoryVisibility.Invited,
  joined: HistoryVisibility.Joined,
  world_readable: HistoryVisibility.WorldReadable,
};

const weekMs = 7 * 24 * 60 * 60_000;
const messagesMost = 100;

const whole = (value: unknown, most: number): number =>
  typeof value === "number" && Number.isInteger(value) && value > 0 && value <= most ? value : most;

const settingsOf = ({ encryption, visibility }: SealedRoom): EncryptionSettings => {
  const settings = new EncryptionSettings();
  settings.sharingStrategy = CollectStrategy.allDevices();
  // Microseconds.
  settings.rotationPeriod = BigInt(whole(encryption.rotation_period_ms, weekMs)) * 1_000n;
  settings.rotationPeriodMessages = BigInt(whole(encryption.rotation_period_msgs, messagesMost));
  settings.historyVisibility = visibilities[String(visibility)] ?? HistoryVisibility.Shared;
  return settings;
};

/**
 * Encrypts an event for those who are in the room now, with the devices that they have now; new devices are given the
 * key first. Whoever sends it stores it first: it is never encrypted twice.
 * @param isFresh a new session is begun, whatever was used before
 */
export async function seal(
  device: Device,
  room: SealedRoom,
  inner: Inner,
  isFresh: boolean,
): Promise<Record<string, unknown>> {
  const { machine } = device;
  const readers = () => room.readers.map((user) => new OlmUserId(user));
  const roomId = () => new OlmRoomId(room.roomId);
  await track(device, room.readers);
  if (isFresh) await machine.invalidateGroupSession(roomId());
  const claim = await machine.getMissingSessions(readers());
  if (claim) await send(device, claim);
  for (const share of await machine.shareRoomKey(roomId(), readers(), settingsOf(room))) await send(device, share);
  return JSON.parse(await machine.encryptRoomEvent(roomId(), inner.type, JSON.stringify(inner.content)));
}
