import { randomBytes } from "node:crypto";
import { Attachment, EncryptedAttachment, initAsync } from "@matrix-org/matrix-sdk-crypto-wasm";
import { beforeAll, describe, expect, it } from "vitest";
import { BadFile, decryptFile, encryptFile } from "../../../src/adapters/matrix/encrypted-file.ts";

const url = "mxc://example.org/file";

describe("an encrypted file", () => {
  beforeAll(() => initAsync());

  it.each([0, 1, 15, 65_536, 200_001])("of %i bytes is read by other clients, and by us", (length) => {
    const clear = randomBytes(length);
    const { bytes, keys } = encryptFile(Buffer.from(clear));
    const theirs = new EncryptedAttachment(new Uint8Array(bytes), JSON.stringify({ ...keys, url }));
    expect(Buffer.from(Attachment.decrypt(theirs)).equals(clear)).toBe(true);
    expect(decryptFile(bytes, keys).equals(clear)).toBe(true);
  });

  it("of another client is read by us", () => {
    const clear = randomBytes(100_000);
    const theirs = Attachment.encrypt(new Uint8Array(clear));
    const keys = JSON.parse(theirs.mediaEncryptionInfo ?? "");
    expect(decryptFile(Buffer.from(theirs.encryptedData), keys).equals(clear)).toBe(true);
  });

  it("is in memory once", () => {
    const clear = Buffer.alloc(200_000);
    const { bytes, keys } = encryptFile(clear);
    expect(bytes.buffer).toBe(clear.buffer);
    expect(decryptFile(bytes, keys).buffer).toBe(clear.buffer);
  });

  it("whose bytes were changed is not decrypted, not even in part", () => {
    const { bytes, keys } = encryptFile(Buffer.alloc(200_000));
    bytes[199_999] = (bytes[199_999] ?? 0) ^ 1;
    const before = Buffer.from(bytes);
    expect(() => decryptFile(bytes, keys)).toThrow(BadFile);
    expect(bytes.equals(before)).toBe(true);
  });
});
