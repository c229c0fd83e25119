import { type Cipheriv, createCipheriv, createDecipheriv, createHash, type Decipheriv } from "node:crypto";
import { secret } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";

/** Key, counter and hash of an encrypted file, as the message has them that carries it; its address comes beside them. */
export type FileKeys = Readonly<Record<string, unknown>>;

const algorithm = "aes-256-ctr";
const version = "v2";

const unpadded = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replace(/=+$/, "");

/** Bytes that are encrypted at once. */
const stride = 65_536;

/** Sends bytes through a cipher and back to their places: a large file is in memory once. */
function inPlace(cipher: Cipheriv | Decipheriv, bytes: Buffer): Buffer {
  for (let at = 0; at < bytes.length; at += stride) bytes.set(cipher.update(bytes.subarray(at, at + stride)), at);
  cipher.final();
  return bytes;
}

/** Encrypts a file with a key of its own, in its place. */
export function encryptFile(content: Buffer): { readonly bytes: Buffer; readonly keys: FileKeys } {
  const key = Buffer.from(secret(32), "hex");
  // The lower half counts.
  const iv = Buffer.concat([Buffer.from(secret(8), "hex"), Buffer.alloc(8)]);
  const cipher = createCipheriv(algorithm, key, iv);
  const bytes = inPlace(cipher, content);
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
 * Decrypts a file in its place, once its hash was found to be right.
 * @throws BadFile
 */
export function decryptFile(bytes: Buffer, keys: FileKeys): Buffer {
  const { hashes, iv, key, v } = keys;
  if (v !== version) throw new BadFile("it is encrypted in an unknown way");
  if (!isObject(key) || !isObject(hashes) || typeof iv !== "string") throw new BadFile("its key is malformed");
  const [secretKey, counter] = [Buffer.from(String(key.k), "base64url"), Buffer.from(iv, "base64")];
  if (key.alg !== "A256CTR" || secretKey.length !== 32 || counter.length !== 16)
    throw new BadFile("its key is malformed");
  const hash = createHash("sha256").update(bytes).digest();
  if (!hash.equals(Buffer.from(String(hashes.sha256), "base64"))) throw new BadFile("it was changed on its way");
  return inPlace(createDecipheriv(algorithm, secretKey, counter), bytes);
}
