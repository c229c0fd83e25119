import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { UserId } from "../../base/lib/ids.ts";
import { canonicalJson, isObject } from "../../base/lib/json.ts";
import type { IdentitySeeds, KnownDevice } from "../tables/crypto-machines.ts";

/** How the keys that the homeserver gives people of an agent differ from ours. */
type Difference =
  /** Nobody can write to the device. */
  | "no device"
  /** People see somebody else. */
  | "another identity"
  /** People see a device that nobody has signed. */
  | "not signed";

/**
 * Compares a device of ours with what people are given of it. The identity signs one device alone, the one with our keys:
 * its signature stands for them.
 * @param answer the homeserver's, to `keys/query`
 */
export function findKeyDifference(
  { userId, deviceId, identity }: KnownDevice,
  answer: unknown,
): Difference | undefined {
  const device = at(answer, "device_keys", userId, deviceId);
  if (!isObject(device)) return "no device";
  const signer = publicKey(identity.selfSigning);
  if (!isPublished(userId, identity, answer)) return "another identity";
  const signature = at(device, "signatures", userId, `ed25519:${nameOf(signer)}`);
  const { signatures: _, unsigned: __, ...signed } = device;
  const isSigned =
    typeof signature === "string" &&
    verify(null, Buffer.from(canonicalJson(signed)), signer, Buffer.from(signature, "base64"));
  return isSigned ? undefined : "not signed";
}

/** True if people are given this identity of the user. `answer`: as above. */
export function isPublished(userId: UserId, { master, selfSigning }: IdentitySeeds, answer: unknown): boolean {
  const isGiven = (keys: string, seed: string) => {
    const name = nameOf(publicKey(seed));
    return at(answer, keys, userId, "keys", `ed25519:${name}`) === name;
  };
  return isGiven("master_keys", master) && isGiven("self_signing_keys", selfSigning);
}

/** The identity's public keys, signed, as the homeserver takes them. */
export function publicIdentity(userId: UserId, { master, selfSigning, userSigning }: IdentitySeeds) {
  const masterName = `ed25519:${nameOf(publicKey(master))}`;
  const keyOf = (usage: string, seed: string) => {
    const name = nameOf(publicKey(seed));
    return { user_id: userId, usage: [usage], keys: { [`ed25519:${name}`]: name } };
  };
  const signedKeyOf = (usage: string, seed: string) => {
    const key = keyOf(usage, seed);
    const signature = unpadded(sign(null, Buffer.from(canonicalJson(key)), privateKey(master)));
    return { ...key, signatures: { [userId]: { [masterName]: signature } } };
  };
  return {
    master_key: keyOf("master", master),
    self_signing_key: signedKeyOf("self_signing", selfSigning),
    user_signing_key: signedKeyOf("user_signing", userSigning),
  };
}

/** Bytes before the 32 bytes of a private Ed25519 key in its usual form (PKCS #8). */
const prefix = Buffer.from("302e020100300506032b657004220420", "hex");

const privateKey = (seed: string): KeyObject =>
  createPrivateKey({ key: Buffer.concat([prefix, Buffer.from(seed, "base64")]), format: "der", type: "pkcs8" });

const publicKey = (seed: string): KeyObject => createPublicKey(privateKey(seed));

const unpadded = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replace(/=+$/, "");

/** The key itself, by which it is named as well. */
const nameOf = (key: KeyObject): string => unpadded(Buffer.from(String(key.export({ format: "jwk" }).x), "base64url"));

const at = (value: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>((found, key) => (isObject(found) ? found[key] : undefined), value);
