import {
  DecryptionSettings,
  DeviceId,
  OlmMachine,
  RoomId as OlmRoomId,
  UserId as OlmUserId,
  TrustRequirement,
} from "@matrix-org/matrix-sdk-crypto-wasm";
import { messageOf } from "../../src/base/lib/errors.ts";
import type { RoomId, UserId } from "../../src/base/lib/ids.ts";
import { type Device, flush } from "../../src/domain/crypto/device.ts";
import { pull } from "../../src/domain/crypto/pull.ts";
import { seal } from "../../src/domain/crypto/seal.ts";
import type { KeyServer } from "./key-server.ts";

const megolm = "m.megolm.v1.aes-sha2";

interface Inner {
  readonly type?: string;
  readonly content?: unknown;
}

/** A person's device on a `KeyServer`, which encrypts whatever it is given, and forgets everything with the test. */
export class SecretDevice {
  readonly #device: Device;

  private constructor(device: Device) {
    this.#device = device;
  }

  /** Some device of ours has to be open: it loads what all of them run on. */
  static async make({ client }: KeyServer, userId: UserId, deviceId = "PERSON"): Promise<SecretDevice> {
    const machine = await OlmMachine.initialize(new OlmUserId(userId), new DeviceId(deviceId));
    const device = { userId, deviceId, machine, client, onShared() {} };
    await flush(device);
    return new SecretDevice(device);
  }

  get userId(): UserId {
    return this.#device.userId;
  }

  /** Encrypts for these users; `isFresh` begins a new session. */
  async seal(
    roomId: RoomId,
    readers: readonly UserId[],
    { type = "m.room.message", content = { msgtype: "m.text", body: "hello" } }: Inner = {},
    isFresh = false,
  ): Promise<Record<string, unknown>> {
    const room = { roomId, readers, visibility: "shared", encryption: { algorithm: megolm } };
    await this.pull();
    return seal(this.#device, room, { type, content: content as Record<string, unknown> }, isFresh);
  }

  async pull(): Promise<void> {
    await pull(this.#device, {}, { together: (work) => work(), pulled: async () => {} });
  }

  /** Text of an event, or why it cannot be read. */
  async read(roomId: RoomId, sender: UserId, content: unknown): Promise<string> {
    await this.pull();
    const event = { event_id: "$e", room_id: roomId, sender, type: "m.room.encrypted", origin_server_ts: 0, content };
    const settings = new DecryptionSettings(TrustRequirement.Untrusted);
    try {
      const clear = await this.#device.machine.decryptRoomEvent(JSON.stringify(event), new OlmRoomId(roomId), settings);
      return JSON.parse(clear.event).content.body;
    } catch (error) {
      return `unreadable: ${messageOf(error)}`;
    }
  }
}
