import {
  DecryptionSettings,
  DeviceLists,
  UserId as OlmUserId,
  TrustRequirement,
} from "@matrix-org/matrix-sdk-crypto-wasm";
import { secret, type UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { isUserId } from "../../base/lib/matrix-id.ts";
import { type Device, flush, track } from "./device.ts";

/** Devices of people need not be verified by anybody: agents speak with whoever may speak with them. */
export const decryptionSettings = (): DecryptionSettings => new DecryptionSettings(TrustRequirement.Untrusted);

/** Position up to which the homeserver's messages to a device were taken, and what it said of the device's own keys. */
export interface Pulled {
  readonly since: string;
  /** One-time keys that the homeserver has left, in its own words. */
  readonly keysLeft: string;
}

/** Where a device keeps what has come for it. */
export interface PullMemory {
  /** Keeps all that the machine writes in this work, or nothing. */
  together<Result>(work: () => Promise<Result>): Promise<Result>;
  /** All before this position is kept: the homeserver may forget it. */
  pulled(since: string): Promise<void>;
}

/** Takes what the homeserver has for the device, all of it. */
export async function pull(device: Device, before: Partial<Pulled>, memory: PullMemory): Promise<Pulled> {
  let { since, keysLeft = "" } = before;
  for (;;) {
    const { next, toDevice, changed, left, counts, fallbacks } = await sync(device, since);
    const isNews = toDevice.length > 0 || changed.length > 0 || left.length > 0;
    const keys = JSON.stringify([counts, fallbacks]);
    if (isNews || keys !== keysLeft) {
      // Only of a device that it knows the machine can tell whose the keys are that come from it.
      await track(device, [...new Set(toDevice.map(({ sender }) => sender).filter(isUser))]);
      const lists = new DeviceLists(
        changed.map((user) => new OlmUserId(user)),
        left.map((user) => new OlmUserId(user)),
      );
      await memory.together(() =>
        device.machine.receiveSyncChanges(
          JSON.stringify(toDevice),
          lists,
          new Map(Object.entries(counts)),
          fallbacks && new Set(fallbacks),
          decryptionSettings(),
        ),
      );
    }
    if (isNews || since === undefined) await memory.pulled(next);
    [since, keysLeft] = [next, keys];
    await flush(device);
    if (toDevice.length === 0) return { since, keysLeft };
  }
}

interface Answer {
  readonly next: string;
  readonly toDevice: readonly Record<string, unknown>[];
  readonly changed: readonly string[];
  readonly left: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
  readonly fallbacks: readonly string[] | undefined;
}

const nothing = { types: [] };

/** The room that is not there makes each request another: Synapse repeats its answer to an equal one for two minutes. */
async function sync({ client, userId, deviceId }: Device, since: string | undefined): Promise<Answer> {
  const room = { rooms: [], not_rooms: [`!${secret(8)}:no.such.room`] };
  const filter = JSON.stringify({ room, presence: nothing, account_data: nothing });
  const answer = await client.request("GET", "/_matrix/client/v3/sync", {
    as: { userId, deviceId },
    query: { since, filter, timeout: 0, set_presence: "offline" },
  });
  if (typeof answer.next_batch !== "string")
    throw new Error("the homeserver's answer to a device's sync names no place to go on from");
  const section = (name: string) => (isObject(answer[name]) ? answer[name] : {});
  const fallbacks = answer.device_unused_fallback_key_types;
  return {
    next: answer.next_batch,
    toDevice: list(section("to_device").events).filter(isObject),
    changed: list(section("device_lists").changed).filter(isText),
    left: list(section("device_lists").left).filter(isText),
    counts: Object.fromEntries(
      Object.entries(section("device_one_time_keys_count")).filter((entry): entry is [string, number] =>
        Number.isInteger(entry[1]),
      ),
    ),
    fallbacks: Array.isArray(fallbacks) ? fallbacks.filter(isText) : undefined,
  };
}

const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const isText = (value: unknown): value is string => typeof value === "string";
const isUser = (value: unknown): value is UserId => isText(value) && isUserId(value);
