import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../src/app/config/config.ts";

let dir: string;
let file: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-config-"));
  file = join(dir, "config.yaml");
});
afterEach(() => rm(dir, { recursive: true }));

const minimal = `
homeserver: { url: http://127.0.0.1:8008/, serverName: example.org }
bridge: { url: http://127.0.0.1:9009 }
database: { dir: data }
model: { name: some/model }
permissions: { "@you:example.org": admin }
`;

const load = async (yaml: string, env = {}) => {
  await writeFile(file, yaml);
  return loadConfig(file, env);
};

/** The lines with which it is refused, without the first, which names the file. */
const refusal = async (yaml: string, env = {}): Promise<string[]> => {
  try {
    await load(yaml, env);
  } catch (error) {
    const [first, ...lines] = String(error).split("\n");
    expect(first).toContain(file);
    return lines.map((line) => line.trim());
  }
  throw new Error("it was accepted");
};

describe("configuration", () => {
  it("fills in defaults and makes paths absolute", async () => {
    expect(await load(minimal)).toEqual({
      file: join(dir, "config.yaml"),
      homeserver: { url: "http://127.0.0.1:8008", serverName: "example.org" },
      bridge: { url: "http://127.0.0.1:9009", host: "127.0.0.1", port: 9009, instance: `${hostname()}:9009` },
      registration: join(dir, "registration.yaml"),
      database: { dir: join(dir, "data") },
      model: { baseUrl: "https://openrouter.ai/api/v1", apiKey: undefined, name: "some/model" },
      models: {},
      embeddings: {
        kind: "local",
        dir: join(dir, "data", "models", "all-MiniLM-L6-v2"),
        downloadFrom: expect.stringMatching(/^https:\/\/huggingface\.co\/.*[^/]$/),
      },
      sandbox: {
        hosts: [
          {
            name: "default",
            engine: { kind: "podman", podman: "podman", connection: undefined, seccomp: undefined },
            runningMost: 20,
          },
        ],
        backups: undefined,
        image: "localhost/clevernet-sandbox:latest",
        firstUid: 1_000_000,
        idleSeconds: 900,
        network: [],
        limits: {
          memoryMegabytes: 1_024,
          cpus: 1,
          processes: 256,
          tmpMegabytes: 256,
          sharedMegabytes: 64,
          fileMegabytes: 2_048,
          diskMegabytes: undefined,
          commandSeconds: 120,
        },
        disk: { freeMegabytes: 1_024, freeFiles: 20_000, workspaceMegabytes: 8_192, workspaceFiles: 500_000 },
      },
      files: { quotaMegabytes: 256 },
      memory: { ranking: "product", historyMessages: 1_000, historyDays: 365 },
      mcp: [],
      media: { maxMegabytes: 16 },
      encryption: { maxOpenDevices: 200 },
      permissions: { "@you:example.org": "admin" },
      controlRoom: undefined,
      agents: [],
      logLevel: "info",
      limits: { requester: 60, room: 120 },
      budgets: {},
      prices: {},
      web: { hasPages: true, allow: [], scrapingFish: undefined, search: undefined, youtubeVersion: undefined },
      warnings: [],
    });
  });

  it("takes the commented example", async () => {
    const config = await loadConfig(join(import.meta.dirname, "../../../config.yaml"), {});
    expect(config.agents).toMatchObject([{ name: "helper", owner: "@you:example.org", settings: { mode: "create" } }]);
    expect(config.warnings).toEqual([]);
  });

  it.each([
    ["{ kind: off }", { kind: "off" }],
    ["{ dir: m, downloadFrom: http://mirror/x/ }", { kind: "local", dir: "m", downloadFrom: "http://mirror/x" }],
    ["{ downloadFrom: nowhere }", { kind: "local", downloadFrom: undefined }],
    [
      "{ kind: endpoint, baseUrl: https://api.test/v1/, name: some-embedder, apiKey: sk-1 }",
      { kind: "endpoint", baseUrl: "https://api.test/v1", name: "some-embedder", apiKey: "sk-1" },
    ],
  ])("takes embeddings: %s", async (written, meant) => {
    const { embeddings } = await load(`${minimal}embeddings: ${written}\n`);
    expect(embeddings).toMatchObject("dir" in meant ? { ...meant, dir: join(dir, meant.dir) } : meant);
  });

  it("keeps the embedding model beside itself where the database is a server", async () => {
    const { embeddings } = await load(minimal.replace("{ dir: data }", '{ url: "postgres://127.0.0.1/x" }'));
    expect(embeddings).toMatchObject({ dir: join(dir, "models", "all-MiniLM-L6-v2") });
  });

  it("refuses an endpoint for embeddings without an address and a model, and shows no key", async () => {
    expect(await refusal(`${minimal}embeddings: { apiKey: "a b" }\n`)).toEqual([
      expect.stringMatching(/^embeddings\.apiKey: found a value not shown, expected a key of one line/),
    ]);
    expect(await refusal(`${minimal}embeddings: { kind: endpoint }\n`)).toEqual([
      "embeddings.baseUrl: missing, expected a URL such as https://api.openai.com/v1",
      "embeddings.name: missing, expected the name of an embedding model, such as text-embedding-3-small",
    ]);
    expect(await refusal(`${minimal}embeddings: { downloadFrom: somewhere }\n`)).toEqual([
      'embeddings.downloadFrom: found "somewhere", expected a URL, or nowhere',
    ]);
  });

  it("takes servers of tools: addresses and programs", async () => {
    const { mcp } = await load(
      `${minimal}mcp: { wiki: { url: "https://wiki.test/mcp", headers: { Authorization: "Bearer \${TOKEN}" }, tools: { a: read } }, files: { command: [node, a.js], env: { KEY: x }, network: [npm], timeoutSeconds: 5 } }\n`,
      { TOKEN: "t" },
    );
    expect(mcp).toEqual([
      {
        name: "wiki",
        door: { url: "https://wiki.test/mcp", headers: { Authorization: "Bearer t" } },
        include: ["*"],
        timeoutMs: 60_000,
        isTrusted: false,
        kinds: { a: "read" },
      },
      {
        name: "files",
        door: { command: ["node", "a.js"], env: { KEY: "x" }, network: ["npm"] },
        include: ["*"],
        timeoutMs: 5_000,
        isTrusted: false,
        kinds: {},
      },
    ]);
  });

  it("refuses a server that is neither or both, and shows nothing of its headers and its environment", async () => {
    const lines = await refusal(
      `${minimal}mcp: { A: {}, a: {}, b: { url: "http://b/", command: [x], headers: { X-Key: "käy" } }, c: { command: [x], env: { K: [1] }, network: [10.0.0.1] } }\n`,
    );
    expect(lines).toEqual([
      expect.stringMatching(/^mcp\.A: expected a name of 1 to 20 characters/),
      expect.stringMatching(/^mcp\.a\.url: missing, expected exactly one of url and command/),
      expect.stringMatching(/^mcp\.b\.headers\.X-Key: found a value not shown, expected headers such as Authorization/),
      expect.stringMatching(/^mcp\.b\.url: found "http:\/\/b\/", expected exactly one of url and command/),
      "mcp.b.headers: found settings, expected none beside command",
      "mcp.c.env.K: found a value not shown, expected values by their names, such as LANG: en",
      expect.stringMatching(/^mcp\.c\.network\[0\]: found "10\.0\.0\.1", expected a list of hosts/),
    ]);
  });

  it("names the command that makes a missing file", async () => {
    await expect(loadConfig(file, {})).rejects.toThrow(`npm run clevernet -- init --dir ${dir}`);
  });

  it("names line and column of a syntax error", async () => {
    expect((await refusal("homeserver:\n  url: @you\n"))[0]).toMatch(/^line 2, column 8: .*reserved character @/);
    expect((await refusal("a: *nowhere"))[0]).toContain("nowhere");
  });

  it("tells all mistakes at once, each with path, what was found and what is expected", async () => {
    const lines = await refusal(`
homeserver: { url: localhost, servername: example.org }
bridge: { url: http://127.0.0.1:9009, port: 0 }
database: { url: "mysql://you:pw@host/db" }
model: {}
permissions: { "@you:example.org": boss, "Mia Müller": admin, Mia: chat, "@*": use }
controlRoom: "#control:example.org"
logLevel: loud
agents: { Helper: {}, helper: { mode: all }, "..": {} }
databse: {}
`);
    expect(lines).toEqual([
      'homeserver.url: found "localhost", expected a URL such as http://127.0.0.1:8008',
      "homeserver.serverName: missing, expected the name behind the colon in user ids, such as example.org",
      'homeserver: unknown key "servername", did you mean "serverName"?',
      "bridge.port: found 0, expected a port from 1 to 65535",
      "database.url: found a value not shown, expected postgres://USER:PASSWORD@HOST/DATABASE",
      "model.name: missing, expected the name of a model, such as anthropic/claude-sonnet-4.5",
      'permissions["@you:example.org"]: found "boss", expected one of none, chat, use, operate, admin',
      expect.stringMatching(/^permissions\["Mia Müller"\]: not an actor, expected a full user id/),
      expect.stringMatching(/^permissions.Mia: not an actor/),
      expect.stringMatching(/^permissions\["@\*"\]: not an actor/),
      expect.stringMatching(/^controlRoom: found "#control:example.org", expected a room id/),
      expect.stringMatching(/^agents.Helper: expected an agent's name/),
      'agents.helper.mode: found "all", expected one of none, read, create, update, delete',
      expect.stringMatching(/^agents\[".."\]: expected an agent's name/),
      expect.stringMatching(/^logLevel: found "loud", expected one of trace/),
      'unknown key "databse", did you mean "database"?',
    ]);
  });

  it("names an agent that nobody could ever hear, and what to do", async () => {
    const lines = await refusal(`${minimal}
agents: { helper: { tools: [planner] }, writer: { tools: [planner], answer: text } }
`);
    expect(lines).toEqual([expect.stringMatching(/^agents.helper.tools: .* Add core, or set answer to text$/)]);
  });

  it("names what is wrong with budgets and prices", async () => {
    const lines = await refusal(`${minimal}
budgets:
  bridge: { tokens: -1 }
  agents: { Helper: { usd: 1 } }
  rooms: { "*": { euro: 1 } }
  requesters: { "@you:example.org": 5 }
prices: { some/model: { prompt: 3 } }
`);
    expect(lines).toEqual([
      "budgets.bridge.tokens: found -1, expected a whole number of tokens, 0 or more",
      'budgets.agents.Helper: expected an agent\'s name, or "*" for each',
      expect.stringMatching(/^budgets.rooms\["\*"\]: unknown key "euro"/),
      'budgets.requesters["@you:example.org"]: found 5, expected settings (tokens, usd)',
      'prices["some/model"].completion: missing, expected US dollars per million tokens, 0 or more',
    ]);
  });

  it.each(["", "- a list", "text"])("refuses %j as a whole", async (yaml) => {
    expect((await refusal(yaml))[0]).toContain("expected settings (homeserver, bridge");
  });

  it("names the kinds of tasks where a model is chosen for another", async () => {
    expect(await refusal(`${minimal}models: { draw: { name: a }, reed: { name: b } }`)).toEqual([
      'models: unknown key "draw", known are think, see, read; unknown key "reed", did you mean "read"?',
    ]);
  });

  it("says where the submodel is set now", async () => {
    expect(await refusal(minimal.replace("name: some/model", "name: some/model, submodel: fast"))).toEqual([
      "model: submodel has another place now: write models: { read: { name: … } }, beside model",
    ]);
  });

  it("wants exactly one database", async () => {
    const withDatabase = (database: string) => minimal.replace("{ dir: data }", database);
    const expected = "expected exactly one of dir (a folder for the embedded database) and url or urlFile";
    expect((await refusal(withDatabase("{}")))[0]).toContain(`database.url: missing, ${expected}`);
    expect((await refusal(withDatabase('{ dir: a, url: "postgres://h/d" }')))[0]).toContain(expected);
    expect((await load(withDatabase('{ url: "postgresql://u:p@h/d" }'))).database).toEqual({
      url: "postgresql://u:p@h/d",
    });
  });

  describe("sandbox", () => {
    const withSandbox = (settings: string) => `${minimal}sandbox: ${settings}\n`;

    it("may be off, and may be one of Podman's connections", async () => {
      expect((await load(withSandbox("{ kind: off }"))).sandbox.hosts).toEqual([]);
      const remote = "{ podman: /opt/podman, connection: far, seccomp: /etc/clevernet-seccomp.json }";
      expect((await load(withSandbox(remote))).sandbox.hosts[0]?.engine).toEqual({
        kind: "podman",
        podman: "/opt/podman",
        connection: "far",
        seccomp: "/etc/clevernet-seccomp.json",
      });
    });

    it("may be on several hosts, with backups beside the configuration", async () => {
      const seccomp = "/etc/clevernet/seccomp.json";
      const hosts = `{ near: {}, far: { connection: far, seccomp: ${seccomp}, runningMost: 5 } }`;
      const { sandbox } = await load(withSandbox(`{ hosts: ${hosts}, backups: { folder: kept } }`));
      expect(sandbox.hosts).toEqual([
        { name: "near", engine: { kind: "podman", podman: "podman" }, runningMost: 20 },
        { name: "far", engine: { kind: "podman", podman: "podman", connection: "far", seccomp }, runningMost: 5 },
      ]);
      expect(sandbox.backups).toEqual({ folder: join(dir, "kept"), maxMegabytes: 256 });
      expect(await refusal(withSandbox("{ hosts: {} }"))).toEqual([
        "sandbox.hosts: found settings, expected one host at least",
      ]);
      expect(await refusal(withSandbox("{ hosts: { far: { connection: far } } }"))).toEqual([
        "sandbox.hosts.far.seccomp: missing, expected the path of seccomp.json on the machine of the connection",
      ]);
      expect(await refusal(withSandbox(`{ hosts: { a: {} }, connection: far, seccomp: ${seccomp} }`))).toEqual([
        'sandbox.connection: found "far", expected nothing beside sandbox.hosts: name it there',
      ]);
    });

    it("keeps half of the memory for commands: what is in memory besides may take no more", async () => {
      const half = "{ limits: { memoryMegabytes: 768 } }";
      expect((await load(withSandbox(half))).sandbox.limits).toMatchObject({ memoryMegabytes: 768, tmpMegabytes: 256 });
      expect(await refusal(withSandbox("{ limits: { memoryMegabytes: 767 } }"))).toEqual([
        "sandbox.limits.memoryMegabytes: found 767, expected at least 768: 256 of tmpMegabytes, 64 of sharedMegabytes and 64 of the runner are in memory too, and may take half of it at most",
      ]);
      expect(await refusal(withSandbox("{ limits: { tmpMegabytes: 1024 } }"))).toEqual([
        expect.stringContaining("sandbox.limits.memoryMegabytes: missing, expected at least 2304"),
      ]);
    });

    it("refuses limits that nothing could run in, and a connection without the profile's path", async () => {
      expect(await refusal(withSandbox("{ limits: { processes: 63, cpus: 0 } }"))).toEqual([
        expect.stringMatching(/^sandbox\.limits\.cpus: found 0, expected a number of processors/),
        "sandbox.limits.processes: found 63, expected a whole number from 64 to 32768",
      ]);
      expect(await refusal(withSandbox("{ connection: far }"))).toEqual([
        "sandbox.seccomp: missing, expected the path of seccomp.json on the machine of the connection",
      ]);
    });
  });

  describe("the web", () => {
    const withWeb = (web: string) => `${minimal}\nweb: ${web}\n`;

    it("is searched by the service that is named, at its own address unless another one is given", async () => {
      await writeFile(join(dir, "brave.key"), "the-key\n");
      expect((await load(withWeb("{ search: { provider: brave, apiKeyFile: brave.key } }"))).web.search).toEqual({
        provider: "brave",
        url: "https://api.search.brave.com",
        apiKey: "the-key",
        engineId: undefined,
      });
      const { web } = await load(
        withWeb('{ pages: "off", allow: ["wiki.lan:80"], search: { url: "http://127.0.0.1:8888/" } }'),
      );
      expect(web).toEqual({
        hasPages: false,
        allow: ["wiki.lan:80"],
        youtubeVersion: undefined,
        scrapingFish: undefined,
        search: { provider: "searxng", url: "http://127.0.0.1:8888", apiKey: undefined, engineId: undefined },
      });
    });

    it("is fetched by a service, in a browser unless that is turned off, with a key from a file", async () => {
      await writeFile(join(dir, "fish.key"), "the-key\n");
      const url = "https://scraping.narf.ai/api/v1/";
      for (const [renderJs, hasBrowser] of [
        ["", true],
        [", renderJs: false", false],
      ] as const)
        expect((await load(withWeb(`{ scrapingFish: { apiKeyFile: fish.key${renderJs} } }`))).web.scrapingFish).toEqual(
          {
            url,
            apiKey: "the-key",
            hasBrowser,
          },
        );
    });

    it.each([
      ["{ scrapingFish: {} }", "web.scrapingFish.apiKey: missing, expected a key"],
      ["{ search: {} }", "web.search.url: missing, expected the address of your SearXNG"],
      ["{ search: { provider: tavily } }", "web.search.apiKey: missing, expected a key of tavily, or apiKeyFile: PATH"],
      ["{ search: { provider: google, apiKey: k } }", "web.search.engineId: missing, expected the id of"],
      ["{ search: { provider: exa, apiKeyFile: none.key } }", "web.search.apiKeyFile: "],
      ["{ search: { provider: exa, apiKey: a, apiKeyFile: b } }", "web.search: found both apiKey and apiKeyFile"],
      ["{ search: { provider: bing, apiKey: secret-key } }", "web.search.provider: found"],
      ["{ pages: no }", "web.pages: found"],
      ["{ allow: [wiki.lan] }", "web.allow[0]: found"],
      ["{ allow: ['http://wiki.lan:80'] }", "web.allow[0]: found"],
      ["{ allow: ['wiki.lan:80/x'] }", "web.allow[0]: found"],
      ["{ allow: ['*:80'] }", "web.allow[0]: found"],
      ["{ allow: ['wiki.lan:99999'] }", "web.allow[0]: found"],
    ])("is refused as %s, with the reason", async (web, reason) => {
      const lines = await refusal(withWeb(web));
      expect(lines.join("\n")).toContain(reason);
      expect(lines.join("\n")).not.toContain("secret-key");
    });
  });

  describe("secrets", () => {
    const withKey = (key: string) => minimal.replace("name: some/model", `name: some/model, ${key}`);

    it("come from a file beside the configuration, without the line break at its end", async () => {
      await writeFile(join(dir, "model.key"), "sk-123\n");
      expect((await load(withKey("apiKeyFile: model.key"))).model.apiKey).toBe("sk-123");
    });

    it("come from the environment, also within a value", async () => {
      const env = { KEY: "sk-123", PGPASSWORD: "secret" };
      const yaml = withKey(`apiKey: "\${KEY}"`).replace("dir: data", `url: "postgres://u:\${PGPASSWORD}@h/d"`);
      expect(await load(yaml, env)).toMatchObject({
        model: { apiKey: "sk-123" },
        database: { url: "postgres://u:secret@h/d" },
      });
    });

    it("are missed by the name of their variable, once", async () => {
      const line = "model.apiKey: the environment variable KEY is not set: set it, or write the value itself";
      expect(await refusal(withKey(`apiKey: "\${KEY}"`))).toEqual([line]);
      expect(await refusal(withKey(`apiKey: "\${KEY}"`), { KEY: "" })).toEqual([line]);
    });

    it("are missed by the path of their file, once", async () => {
      const yaml = withKey("apiKeyFile: none.key").replace("dir: data", "urlFile: none.url");
      const lines = await refusal(yaml);
      expect(lines).toHaveLength(2);
      expect(lines[0]).toContain(`model.apiKeyFile: ${join(dir, "none.key")} cannot be read`);
      expect(lines[1]).toContain(`database.urlFile: ${join(dir, "none.url")} cannot be read`);
      await writeFile(join(dir, "empty.key"), "\n");
      expect((await refusal(withKey("apiKeyFile: empty.key")))[0]).toContain("empty.key is empty");
    });

    it("are given once, as a value or as a file", async () => {
      expect(await refusal(withKey("apiKey: a, apiKeyFile: b"))).toEqual([
        "model: found both apiKey and apiKeyFile, expected one of them",
      ]);
    });

    it.each(["sk-123\nsk-456\n", "sk-123 # mine", "sk-\u{201c}123"])(
      "are refused unseen where no header takes them: %j",
      async (key) => {
        await writeFile(join(dir, "model.key"), key);
        const [line, ...more] = await refusal(withKey("apiKeyFile: model.key"));
        expect(line).toMatch(/^model.apiKey: found a value not shown, expected a key of one line/);
        expect([line, ...more].join()).not.toContain("sk-");
      },
    );

    it("in files are found where they are no good", async () => {
      await writeFile(join(dir, "database.url"), "mysql://u:hunter2@h/d");
      expect(await refusal(minimal.replace("dir: data", "urlFile: database.url"))).toEqual([
        "database.url: found a value not shown, expected postgres://USER:PASSWORD@HOST/DATABASE",
      ]);
    });

    it("are never repeated in a message", async () => {
      const yaml = withKey("apiKey: [sk-123], apikey: sk-456").replace("dir: data", "url: hunter2");
      expect((await refusal(yaml)).join()).not.toMatch(/sk-|hunter2/);
    });
  });

  describe("permissions", () => {
    const withPermissions = (permissions: string) => minimal.replace('{ "@you:example.org": admin }', permissions);

    it("may be empty, with a warning that nobody may do anything", async () => {
      for (const nobody of ["{}", "{ example.org: none }"]) {
        expect((await load(withPermissions(nobody))).warnings[0]).toMatch(/^permissions: nobody may do anything/);
      }
    });

    it("take user ids, patterns, homeservers and rooms", async () => {
      const all = '{ "@*:example.org": chat, example.org: chat, "localhost:8448": none, "!id:example.org": use }';
      expect(Object.keys((await load(withPermissions(all))).permissions)).toHaveLength(4);
    });
  });

  describe("agents", () => {
    it("belong to the first admin who is named in full, unless an owner is named", async () => {
      const yaml = minimal.replace(
        '"@you:example.org": admin',
        '"@*:b.org": admin, "@a:b.org": use, "@c:b.org": admin',
      );
      const { agents } = await load(`${yaml}\nagents: { one: {}, two: { owner: "@mia:example.org" } }`);
      expect(agents.map(({ name, owner }) => [name, owner])).toEqual([
        ["one", "@c:b.org"],
        ["two", "@mia:example.org"],
      ]);
    });

    it("need an owner when nobody is admin", async () => {
      const yaml = minimal.replace("admin", "chat");
      expect((await refusal(`${yaml}\nagents: { one: {} }`))[0]).toMatch(/^agents.one.owner: missing, expected a full/);
      const { agents } = await load(`${yaml}\nagents: { one: { owner: "@mia:example.org" } }`);
      expect(agents).toHaveLength(1);
    });

    it("have persona and owner apart from their settings", async () => {
      const { agents } = await load(`${minimal}\nagents: { one: { persona: I am one., displayName: One } }`);
      expect(agents[0]).toMatchObject({ persona: "I am one.", settings: { displayName: "One" } });
      expect(agents[0]?.settings).not.toHaveProperty("persona");
    });

    it("keep what looks like an environment variable in their prompts", async () => {
      const { agents } = await load(`${minimal}\nagents: { one: { systemPrompt: "Write \${HOME}" } }`, { HOME: "x" });
      expect(agents[0]?.settings.systemPrompt).toBe(`Write \${HOME}`);
    });
  });
});
