import { createCipheriv, createDecipheriv, createHash } from "node:crypto";
import { secret } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";

/** Key, counter and hash of an encrypted file, as the message has them that carries it; its address comes beside them. */
export type FileKeys = Readonly<Record<string, unknown>>;

const algorithm = "aes-256-ctr";
const version = "v2";

const unpadded = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replace(/=+$/, "");

/** Encrypts a file with a key of its own. */
export function encryptFile(content: Uint8Array): { readonly bytes: Buffer; readonly keys: FileKeys } {
  const key = Buffer.from(secret(32), "hex");
  // The lower half counts.
  const iv = Buffer.concat([Buffer.from(secret(8), "hex"), Buffer.alloc(8)]);
  const cipher = createCipheriv(algorithm, key, iv);
  const bytes = Buffer.concat([cipher.update(content), cipher.final()]);
  const k = key.toString("base64url");
  const keys = {
    v: version,
    key: { kty: "oct", alg: "A256CTR", ext: true, key_ops: ["encrypt", "decrypt"], k },
    iv: unpadded(iv),
    hashes: { sha256: unpadded(createHash("sha256").update(bytes).digest()) },
  };
  return { bytes, keys };
}

/** A file of a message whose bytes are not what its sender encrypted, or that says it in an unknown way. */
export class BadFile extends Error {
  override readonly name = "BadFile";
}

/**
 * Decrypts a file, once its hash was found to be right.
 * @throws BadFile
 */
export function decryptFile(bytes: Uint8Array, keys: FileKeys): Buffer {
  const { hashes, iv, key, v } = keys;
  if (v !== version) throw new BadFile("it is encrypted in an unknown way");
  if (!isObject(key) || !isObject(hashes) || typeof iv !== "string") throw new BadFile("its key is malformed");
  const [secretKey, counter] = [Buffer.from(String(key.k), "base64url"), Buffer.from(iv, "base64")];
  if (key.alg !== "A256CTR" || secretKey.length !== 32 || counter.length !== 16)
    throw new BadFile("its key is malformed");
  const hash = createHash("sha256").update(bytes).digest();
  if (!hash.equals(Buffer.from(String(hashes.sha256), "base64"))) throw new BadFile("it was changed on its way");
  const decipher = createDecipheriv(algorithm, secretKey, counter);
  return Buffer.concat([decipher.update(bytes), decipher.final()]);
}
