import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import {
  createRegistration,
  readRegistration,
  rotateTokens,
  writeRegistration,
} from "../../../src/adapters/matrix/registration.ts";

const terms = { serverName: "example.org", url: "http://127.0.0.1:9009" };
let dir: string;
let file: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-registration-"));
  file = join(dir, "registration.yaml");
});
afterEach(() => rm(dir, { recursive: true }));

/** The lines with which a registration is refused that differs from a good one in this. */
const refusal = async (difference: object): Promise<string> => {
  await writeFile(file, stringify({ ...createRegistration(terms), ...difference }));
  const error: unknown = await readRegistration(file, terms).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(Error);
  return String(error);
};

describe("registration", () => {
  it("is read as it was written", async () => {
    const registration = createRegistration(terms);
    await writeRegistration(file, registration);
    expect(await readRegistration(file, terms)).toEqual(registration);
  });

  it("has two tokens of its own", () => {
    const [one, two] = [createRegistration(terms), createRegistration(terms)];
    expect(new Set([one.as_token, one.hs_token, two.as_token, two.hs_token]).size).toBe(4);
    expect(one.as_token).toMatch(/^[0-9a-f]{64}$/);
  });

  it("is readable by its owner alone", async () => {
    await writeRegistration(file, createRegistration(terms));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
  });

  it("is never overwritten", async () => {
    await writeFile(file, "mine");
    await expect(writeRegistration(file, createRegistration(terms))).rejects.toThrow("never overwritten");
    expect(await readFile(file, "utf8")).toBe("mine");
  });

  it("claims the agents of this server alone", () => {
    const regex = (serverName: string) => createRegistration({ ...terms, serverName }).namespaces.users[0]?.regex ?? "";
    expect(regex("example.org")).toBe(String.raw`@agent_.*:example\.org`);
    expect(regex("[::1]:8448")).toBe(String.raw`@agent_.*:\[::1\]:8448`);
    expect("@agent_x:exampleXorg").not.toMatch(new RegExp(regex("example.org")));
  });

  it("is refused with the placeholders of the example, naming the command that makes tokens", async () => {
    const example = join(import.meta.dirname, "../../../registration.yaml");
    const error: unknown = await readRegistration(example, terms).catch((thrown: unknown) => thrown);
    const lines = String(error).split("\n");
    expect(lines).toHaveLength(4);
    expect(lines[1]).toContain("as_token: found a value not shown");
    expect(lines[1]).toContain("npm run clevernet -- init --rotate-tokens --dir ");
    expect(lines[2]).toContain("hs_token: ");
  });

  it.each(["", "text", "- a list"])("is not rotated where it is none: %j", async (text) => {
    await writeFile(file, text);
    await expect(rotateTokens(file)).rejects.toThrow("found no registration");
    expect(await readFile(file, "utf8")).toBe(text);
  });

  it("is usable after the example's tokens were rotated, with its comments", async () => {
    const example = await readFile(join(import.meta.dirname, "../../../registration.yaml"), "utf8");
    await writeFile(file, example, { mode: 0o640 });
    await rotateTokens(file);
    expect(await readRegistration(file, terms)).toMatchObject({ id: "clevernet", rate_limited: false });
    const withoutTokens = (text: string) => text.replaceAll(/^(as|hs)_token: .*$/gm, "");
    expect(withoutTokens(await readFile(file, "utf8"))).toBe(withoutTokens(example));
    expect((await stat(file)).mode & 0o777).toBe(0o640);
  });

  it("names both servers when it was made for another", async () => {
    const message = await refusal({ namespaces: createRegistration({ ...terms, serverName: "other.org" }).namespaces });
    expect(message).toContain(String.raw`namespaces.users[0].regex: found "@agent_.*:other\\.org"`);
    expect(message).toContain(String.raw`expected '@agent_.*:example\.org', because config.yaml says`);
  });

  it.each([
    ["a missing token", { as_token: undefined }, "as_token: missing"],
    ["an empty token", { hs_token: "" }, "hs_token: found a value not shown"],
    ["a token that can be guessed", { hs_token: "CHANGE_ME" }, "hs_token: found a value not shown, expected a token"],
    ["a token that no header takes", { hs_token: "ä".repeat(16) }, "hs_token: found a value not shown"],
    [
      "one token for both",
      { as_token: "same".repeat(9), hs_token: "same".repeat(9) },
      "hs_token: found a value not shown",
    ],
    ["another bot", { sender_localpart: "bot" }, 'sender_localpart: found "bot", expected clevernet'],
    ["rate limits", { rate_limited: true }, "rate_limited: found true, expected false"],
    ["ephemeral events", { receive_ephemeral: true }, "receive_ephemeral: found true, expected false"],
    ["no devices", { "io.element.msc4190": undefined }, '["io.element.msc4190"]: missing, expected true'],
    ["another address", { url: "http://other:1" }, "expected http://127.0.0.1:9009, which is bridge.url"],
    ["no namespace", { namespaces: { users: [] } }, "namespaces.users: found a list, expected one entry"],
    ["a shared namespace", { namespaces: { users: [{ regex: "@agent_.*:example\\.org" }] } }, "exclusive: missing"],
  ])("is refused with %s", async (_, difference, expected) => {
    expect(await refusal(difference)).toContain(expected);
  });

  it("never repeats a token", async () => {
    expect(await refusal({ as_token: "a b", hs_token: ["secret-one"] })).not.toMatch(/a b|secret-one/);
  });

  it("takes what other fields a homeserver may know", async () => {
    await writeFile(file, stringify({ ...createRegistration(terms), protocols: [], "org.matrix.msc3202": false }));
    expect(await readRegistration(file, terms)).not.toHaveProperty("protocols");
  });

  it("is missed with the command that makes one", async () => {
    await expect(readRegistration(file, terms)).rejects.toThrow("npm run clevernet -- init --dir");
  });
});
