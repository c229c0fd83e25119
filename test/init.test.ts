import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../src/config.ts";
import { type InitOptions, init, rotateFolderTokens } from "../src/init.ts";
import { readRegistration } from "../src/matrix/registration.ts";

let dir: string;
let options: InitOptions;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-init-"));
  options = { dir, homeserver: "http://127.0.0.1:8008", admin: "@mia:my.org" };
});
afterEach(() => rm(dir, { recursive: true }));

const configFile = () => join(dir, "config.yaml");
const loaded = () => loadConfig(configFile(), { OPENROUTER_API_KEY: "sk-123" });

describe("init", () => {
  it("makes files that can be started with", async () => {
    await init(options);
    const config = await loaded();
    expect(config).toMatchObject({
      homeserver: { serverName: "my.org" },
      database: { dir: join(dir, "data") },
      model: { apiKey: "sk-123" },
      permissions: { "@mia:my.org": "admin", "my.org": "chat" },
    });
    const terms = { serverName: config.homeserver.serverName, url: config.bridge.url };
    expect(await readRegistration(config.registration, terms)).toMatchObject({ id: "clevernet" });
  });

  it("keeps a comment on every setting", async () => {
    await init(options);
    const text = await readFile(configFile(), "utf8");
    for (const [setting] of text.matchAll(/^[a-zA-Z]+:/gm)) {
      expect(text, setting).toMatch(new RegExp(`^#.*\n${setting}`, "m"));
    }
  });

  it("tells the two lines for homeserver.yaml, and to let its user read the registration", async () => {
    const told = await init(options);
    expect(told).toContain(`app_service_config_files:\n         - ${join(dir, "registration.yaml")}\n`);
    expect(told).toContain("chmod 640");
    expect((await stat(configFile())).mode & 0o777).toBe(0o600);
  });

  it("takes addresses, model and database", async () => {
    await writeFile(join(dir, "model.key"), "sk-456\n");
    await init({
      ...options,
      url: "http://bridge:7000/",
      modelUrl: "http://127.0.0.1:1234/v1",
      model: "local",
      modelKeyFile: join(dir, "model.key"),
      database: "postgres://u:p@h/d",
    });
    expect(await loaded()).toMatchObject({
      bridge: { url: "http://bridge:7000", host: "0.0.0.0", port: 7000 },
      model: { baseUrl: "http://127.0.0.1:1234/v1", name: "local", apiKey: "sk-456" },
      database: { url: "postgres://u:p@h/d" },
    });
  });

  it("asks for no key where the model is one's own", async () => {
    await init({ ...options, modelUrl: "http://127.0.0.1:1234/v1" });
    expect((await loadConfig(configFile(), {})).model.apiKey).toBeUndefined();
  });

  it.each(["config.yaml", "registration.yaml"])("leaves everything when %s exists", async (name) => {
    await writeFile(join(dir, name), "mine");
    await expect(init(options)).rejects.toThrow(`${join(dir, name)} exists and is not overwritten`);
    expect(await readdir(dir)).toEqual([name]);
    expect(await readFile(join(dir, name), "utf8")).toBe("mine");
  });

  it("writes nothing when a value cannot be used", async () => {
    await expect(init({ ...options, homeserver: "my.org", database: "postgres://" })).rejects.toThrow(
      'homeserver.url: found "my.org", expected a URL',
    );
    await expect(init({ ...options, admin: "@*:my.org" })).rejects.toThrow("no full user id");
    expect(await readdir(dir)).toEqual([]);
  });

  it("rotates the tokens of a folder", async () => {
    await init(options);
    const before = await readFile(join(dir, "registration.yaml"), "utf8");
    await rotateFolderTokens(dir);
    const after = await readFile(join(dir, "registration.yaml"), "utf8");
    expect(after).not.toBe(before);
    expect(after.replaceAll(/_token: .*/g, "")).toBe(before.replaceAll(/_token: .*/g, ""));
  });
});
