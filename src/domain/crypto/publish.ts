import { DeviceId, UserId as OlmUserId } from "@matrix-org/matrix-sdk-crypto-wasm";
import { isObject } from "../../base/lib/json.ts";
import type { IdentitySeeds } from "../tables/crypto-machines.ts";
import { type Device, flush, send } from "./device.ts";
import { isPublished, publicIdentity } from "./identity.ts";

/** The homeserver knows the device with other keys than ours: our memory of it is not the one that made them. */
export class OtherKeys extends Error {
  override readonly name = "OtherKeys";
}

/**
 * Gives the homeserver the keys of a device that nobody can write to yet, and the identity that signs them: the one that
 * is given, or a new one. Returns the identity. Each step may be repeated.
 */
export async function publish(device: Device, identity: IdentitySeeds | null): Promise<IdentitySeeds> {
  const known = await knownOf(device);
  refuseOtherKeys(device, known);
  // The machine takes the private keys of no other identity than the one that people are given.
  if (identity && !isPublished(device.userId, identity, known))
    await giveIdentity(device, publicIdentity(device.userId, identity));
  await flush(device);
  if (identity) await sign(device, identity);
  else await makeIdentity(device);
  const seeds = await device.machine.exportCrossSigningKeys();
  if (!seeds?.masterKey || !seeds.self_signing_key || !seeds.userSigningKey)
    throw new Error(`${device.userId} has no identity after it was made`);
  return { master: seeds.masterKey, selfSigning: seeds.self_signing_key, userSigning: seeds.userSigningKey };
}

/** Keys of the agent and its device that people are given. */
function knownOf({ client, userId, deviceId }: Device): Promise<unknown> {
  const body = { device_keys: { [userId]: [deviceId] } };
  return client.request("POST", "/_matrix/client/v3/keys/query", { as: { userId }, body });
}

function refuseOtherKeys({ machine, userId, deviceId }: Device, known: unknown): void {
  const found = at(at(at(at(known, "device_keys"), userId), deviceId), "keys");
  const theirs = at(found, `ed25519:${deviceId}`);
  if (typeof theirs === "string" && theirs !== machine.identityKeys.ed25519.toBase64())
    throw new OtherKeys(`the device ${deviceId} of ${userId} has other keys already`);
}

async function giveIdentity({ client, userId, deviceId }: Device, body: Record<string, unknown>): Promise<void> {
  const path = "/_matrix/client/v3/keys/device_signing/upload";
  await client.request("POST", path, { as: { userId, deviceId }, body });
}

const at = (value: unknown, key: string): unknown => (isObject(value) ? value[key] : undefined);

/** Signs the device with an identity that people know already. */
async function sign(device: Device, { master, selfSigning, userSigning }: IdentitySeeds): Promise<void> {
  const { machine, userId, deviceId } = device;
  const own = () => new OlmUserId(userId);
  await machine.importCrossSigningKeys(master, selfSigning, userSigning);
  await send(device, machine.queryKeysForUsers([own()]));
  await flush(device);
  const known = await machine.getDevice(own(), new DeviceId(deviceId));
  if (!known) throw new Error(`the homeserver does not know the new device ${deviceId} of ${userId}`);
  await send(device, await known.verify());
}

async function makeIdentity(device: Device): Promise<void> {
  const { uploadKeysRequest, uploadSignaturesRequest, uploadSigningKeysRequest } =
    await device.machine.bootstrapCrossSigning(false);
  if (uploadKeysRequest) await send(device, uploadKeysRequest);
  await giveIdentity(device, JSON.parse(uploadSigningKeysRequest.body));
  await send(device, uploadSignaturesRequest);
}
