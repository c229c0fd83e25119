import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readRegistration } from "../../../src/adapters/matrix/registration.ts";
import { loadConfig } from "../../../src/app/config/config.ts";
import { type InitOptions, init, refuseFiles, rotateFolderTokens } from "../../../src/app/operator/init.ts";
import { askOperator, requireFlags, testFlags } from "../../../src/app/operator/init-questions.ts";
import { freePort } from "../../support/free-port.ts";

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

  it("makes files that can be read where the homeserver's name has no dot", async () => {
    await init({ ...options, admin: "@mia:synapse" });
    expect((await loaded()).permissions).toEqual({ "@mia:synapse": "admin", "@*:synapse": "chat" });
  });

  it("keeps a comment on every setting", async () => {
    await init(options);
    const text = await readFile(configFile(), "utf8");
    for (const [setting] of text.matchAll(/^[a-zA-Z]+:/gm)) {
      expect(text, setting).toMatch(new RegExp(`^#.*\n${setting}`, "m"));
    }
  });

  it("keeps what the example says of the settings within a setting", async () => {
    await init(options);
    const text = await readFile(configFile(), "utf8");
    expect(text).toMatch(/^ {2}# apiKeyFile: /m);
    expect((await loaded()).model.name).toBe("anthropic/claude-sonnet-4.5");
  });

  it("says before anything else that a folder cannot be made", async () => {
    await writeFile(join(dir, "file"), "");
    await expect(refuseFiles(join(dir, "file", "folder"))).rejects.toThrow(
      /cannot be made or written into .*Name another folder/,
    );
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

  it("ends what it says of an answer with one full stop", async () => {
    const said: string[] = [];
    const answers = ["postgres://u:p@127.0.0.1:1/d", "data"];
    const ask = async () => answers.shift() ?? "";
    await askOperator({ ...options, url: "http://h:1", model: "m" }, { ask, tell: (line) => said.push(line) }, true);
    expect(said).toEqual([expect.stringMatching(/name are right\. Answer anew/)]);
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

  it("does not repeat a key that no header takes", async () => {
    await writeFile(join(dir, "model.key"), "sk-456\nsk-789\n");
    const given = {
      ...options,
      model: "good",
      modelUrl: "http://127.0.0.1:9/v1",
      modelKeyFile: join(dir, "model.key"),
    };
    await expect(testFlags(given)).rejects.toThrow(/--model-url: .*model.key holds no key/);
  });

  it("rotates the tokens of a folder", async () => {
    await init(options);
    const before = await readFile(join(dir, "registration.yaml"), "utf8");
    const told = await rotateFolderTokens(dir);
    expect(told.indexOf("Restart the homeserver")).toBeLessThan(told.indexOf("Restart Clevernet"));
    const after = await readFile(join(dir, "registration.yaml"), "utf8");
    expect(after).not.toBe(before);
    expect(after.replaceAll(/_token: .*/g, "")).toBe(before.replaceAll(/_token: .*/g, ""));
  });
});

describe("what init asks", () => {
  let server: Server;
  let url: string;
  beforeAll(async () => {
    const answers: Record<string, unknown> = {
      "/_matrix/client/versions": { versions: ["v1.1"] },
      "/_matrix/key/v2/server": { server_name: "my.org" },
      "/v1/models": { data: [{ id: "good" }, { id: "better" }] },
    };
    server = createServer((request, response) => {
      const answer = answers[request.url ?? ""];
      const isRefused = request.headers.authorization === "Bearer wrong";
      response.writeHead(isRefused ? 401 : answer ? 200 : 404).end(JSON.stringify(answer ?? {}));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const free = async () => `http://127.0.0.1:${await freePort()}`;

  /** Answers in order; gives what was asked and told. */
  const talk = async (given: Parameters<typeof askOperator>[0], said: string[], mayTest = true) => {
    const lines: string[] = [];
    const ask = async (question: string) => {
      lines.push(question);
      const answer = said.shift();
      if (answer === undefined) throw new Error(`asked beyond what was answered: ${question}`);
      return answer;
    };
    const answers = await askOperator(given, { ask, tell: (line) => void lines.push(line) }, mayTest);
    return { answers, lines };
  };

  it("are five questions, and what follows from the answers is written", async () => {
    const at = await free();
    const { answers, lines } = await talk({ dir }, [url, "@mia:my.org", at, `${url}/v1 good`, ""]);
    expect(lines).toHaveLength(5);
    expect(answers).toMatchObject({ homeserver: url, admin: "@mia:my.org", url: at, model: "good", database: "data" });
    await init({ ...answers, homeserver: url, admin: "@mia:my.org" });
    expect(await loaded()).toMatchObject({ bridge: { url: at }, model: { baseUrl: `${url}/v1`, name: "good" } });
  });

  it("is only what no flag has said", async () => {
    const given = {
      dir,
      homeserver: url,
      admin: "@mia:my.org",
      url: await free(),
      model: "good",
      modelUrl: `${url}/v1`,
    };
    expect((await talk(given, [""])).lines).toEqual([expect.stringContaining("database")]);
  });

  it("is asked again when an answer cannot be used, or fails its test; the same again is kept", async () => {
    const taken = url;
    const { answers, lines } = await talk({ dir }, [
      ...["my.org", "http://127.0.0.1:1", url],
      ...["mia", "@mia:other.org", "@mia:my.org"],
      ...[taken, taken],
      ...[`${url}/v1`, `${url}/v1 bad`, `${url}/v1 better`],
      ...["postgres://me:secret@127.0.0.1:1/d", "db"],
    ]);
    expect(answers).toMatchObject({
      homeserver: url,
      admin: "@mia:my.org",
      url: taken,
      model: "better",
      database: "db",
    });
    const told = lines.filter((line) => line.startsWith("  ✗"));
    expect(told).toEqual([
      expect.stringContaining("expected a URL"),
      expect.stringContaining("no homeserver answers at http://127.0.0.1:1"),
      expect.stringContaining("expected a full user id"),
      expect.stringContaining("the homeserver's name is my.org"),
      expect.stringContaining("nobody can listen on port"),
      expect.stringContaining("expected the model's name"),
      expect.stringContaining('has no model "bad", but good, better'),
      expect.stringContaining("PostgreSQL does not answer"),
    ]);
    expect(told.join()).not.toContain("secret");
  });

  it("is not tested with --no-test", async () => {
    const said = ["http://127.0.0.1:1", "@mia:other.org", url, `${url}/v1 bad`, "data"];
    expect((await talk({ dir }, said, false)).lines).toHaveLength(5);
  });

  it("is named as flags where there is nobody to ask", () => {
    expect(() => requireFlags({ dir })).toThrow(/these flags are missing:\n {2}--homeserver: .*\n {2}--admin: /);
    expect(() => requireFlags({ dir, homeserver: url })).toThrow("--admin");
    expect(() => requireFlags({ dir, homeserver: url, admin: "@mia:my.org" })).not.toThrow();
  });

  it("is tested when flags say it, all at once, and then nothing is written", async () => {
    const key = join(dir, "model.key");
    await writeFile(key, "wrong\n");
    const wrong = { modelUrl: `${url}/v1`, model: "good", modelKeyFile: key };
    const given = { dir, homeserver: "http://127.0.0.1:1", admin: "@mia:my.org", url: await free(), ...wrong };
    await expect(testFlags(given)).rejects.toThrow(
      /^--homeserver: no homeserver answers.*\n--model-url: .* refuses the key \(401\)\nNothing is written/,
    );
    await expect(testFlags({ ...given, homeserver: url, modelKeyFile: undefined })).resolves.toBeUndefined();
  });
});
