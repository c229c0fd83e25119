import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { loadConfig } from "../../../src/app/config/config.ts";
import { LiveConfig } from "../../../src/app/config/live.ts";

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-live-"));
});
afterEach(() => rm(dir, { recursive: true }));

const common = {
  homeserver: { url: "http://127.0.0.1:8008", serverName: "example.org" },
  bridge: { url: "http://127.0.0.1:9009" },
  database: { url: "postgres://127.0.0.1/x" },
  model: { name: "some/model", apiKey: "sk-1" },
  permissions: { "@you:example.org": "admin", "example.org": "chat" },
};
/** The configuration of a process whose file is called so. */
const processOf = async (name: string, config: object = {}): Promise<LiveConfig> => {
  const file = join(dir, name);
  await writeFile(file, stringify({ ...common, ...config }));
  return new LiveConfig(await loadConfig(file));
};

describe("the configuration of two processes", () => {
  it("is the same whatever the order in the file, and whatever belongs to one process or to its start", async () => {
    const one = await processOf("one");
    const other = await processOf("other", {
      bridge: { url: "http://127.0.0.1:9009", port: 9010 },
      permissions: { "example.org": "chat", "@you:example.org": "admin" },
      files: { quotaMegabytes: 9 },
    });
    expect(other.differsFrom(one.fingerprint)).toEqual([]);
  });

  it.each([
    ["permissions", { permissions: { "@you:example.org": "admin" } }],
    ["model", { model: { ...common.model, apiKey: "sk-2" } }],
    ["budgets", { budgets: { rooms: { "*": { tokens: 1 } } } }],
    ["controlRoom", { controlRoom: "!a:example.org" }],
    ["logLevel", { logLevel: "debug" }],
  ])("differs in %s, either way, and no secret can be read from it", async (section, config) => {
    const one = await processOf("one");
    const other = await processOf("other", config);
    expect(other.differsFrom(one.fingerprint)).toEqual([section]);
    expect(one.differsFrom(other.fingerprint)).toEqual([section]);
    expect(other.fingerprint.join()).not.toContain("sk-");
  });

  it("is the same again when both files have been read again", async () => {
    const one = await processOf("one");
    const other = await processOf("other");
    await writeFile(join(dir, "one"), stringify({ ...common, logLevel: "warn" }));
    await writeFile(join(dir, "other"), stringify({ logLevel: "warn", ...common }));
    await one.reload();
    expect(other.differsFrom(one.fingerprint)).toEqual(["logLevel"]);
    await other.reload();
    expect(other.differsFrom(one.fingerprint)).toEqual([]);
  });
});
