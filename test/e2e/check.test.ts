import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { lockDirectory } from "../../src/adapters/database/lock.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { createRegistration, type Registration } from "../../src/adapters/matrix/registration.ts";
import { loadConfig } from "../../src/app/config/config.ts";
import { check } from "../../src/app/operator/check.ts";
import type { Finding } from "../../src/app/operator/check-finding.ts";
import { type Clock, systemClock } from "../../src/base/lib/clock.ts";
import type { AgentName } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { AgentDirectory } from "../../src/domain/agents/agent.ts";
import { Files } from "../../src/domain/tables/files.ts";
import { freePort } from "../support/free-port.ts";
import { startTestHomeserver, type TestHomeserver } from "../support/homeserver.ts";
import { type Fault, HttpProxy } from "../support/http-proxy.ts";
import type { TestDatabase } from "../support/postgres.ts";
import { ScriptedModel, type Step } from "../support/scripted-model.ts";
import { createSharedDatabase } from "../support/shared-postgres.ts";

const server = "clevernet.test";
const ready: Step = { call: "report_ready", arguments: { ready: true } };

let dir: string;
let port: number;
let homeserver: TestHomeserver;
let toHomeserver: HttpProxy;
let model: ScriptedModel;
let place: TestDatabase;
let database: Database;
/** Registrations that Synapse has loaded: the right one, one with another namespace, one without an address. */
let loaded: Readonly<Record<"right" | "narrow" | "deaf", Registration>>;
/** The set-up that a test breaks before it looks. */
let config: Record<string, unknown>;
let registration: Record<string, unknown>;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-check-"));
  port = await freePort();
  const fresh = () => createRegistration({ serverName: server, url: `http://127.0.0.1:${port}` });
  const bots = { users: [{ exclusive: true, regex: `@bot_.*:${server}` }], aliases: [], rooms: [] };
  loaded = {
    right: fresh(),
    narrow: { ...fresh(), id: "narrow", namespaces: bots },
    deaf: { ...fresh(), id: "deaf", url: null as never },
  };
  const files = Object.entries(loaded).map(async ([name, content]) => {
    const file = join(dir, `${name}.yaml`);
    await writeFile(file, stringify(content));
    return file;
  });
  const extraConfig = { app_service_config_files: await Promise.all(files) };
  homeserver = await startTestHomeserver({ extraConfig });
  [toHomeserver, model, place] = await Promise.all([
    HttpProxy.start(homeserver.url),
    new ScriptedModel().start(),
    createSharedDatabase(),
  ]);
  database = await openDatabase(place);
  model.onEvery(() => answers.shift() ?? ready);
});
afterAll(async () => {
  await database.close();
  await Promise.all([toHomeserver.stop(), place.drop(), model.stop()]);
  await homeserver.dispose();
  await rm(dir, { recursive: true });
});

beforeEach(() => {
  registration = { ...loaded.right };
  config = {
    homeserver: { url: toHomeserver.url, serverName: server },
    bridge: { url: `http://127.0.0.1:${port}`, port },
    registration: "registration.yaml",
    database: { dir: "data" },
    embeddings: { kind: "off" },
    sandbox: { kind: "off" },
    model: { baseUrl: model.url, apiKey: "scripted", name: "scripted" },
    permissions: { "@mia:clevernet.test": "admin", "clevernet.test": "chat" },
  };
});

/** Everything that is not ✓, as `id: what it says → remedy`. */
async function troubles(clock: Clock = systemClock): Promise<string[]> {
  return (await findings(clock)).filter(({ state }) => state !== "ok").map(textOf);
}

const textOf = ({ id, state, says, remedy = "" }: Finding): string => `${state} ${id}: ${says} → ${remedy}`;

async function findings(clock: Clock = systemClock): Promise<Finding[]> {
  await writeFile(join(dir, "registration.yaml"), stringify(registration));
  await writeFile(join(dir, "config.yaml"), stringify(config));
  const seen: Finding[] = [];
  for await (const finding of check(join(dir, "config.yaml"), undefined, clock)) seen.push(finding);
  return seen;
}

/** Answers of the model before it does what it is told. */
let answers: Step[] = [];
const one = (text: string) => [expect.stringContaining(text)];

const asksForName = ({ path }: { path: string }) => path.includes("/register/available");
/** Synapse lets each of these wait for a second, as it would anybody who tries names: it is asked by the first tests alone. */
let sparesName: Fault;
const spareName = () => {
  sparesName = toHomeserver.respond({ status: 400, body: { errcode: "M_EXCLUSIVE" } }, { when: asksForName });
};

describe("a set-up in order", () => {
  afterAll(spareName);

  it("has nothing but ✓, and is not changed", async () => {
    expect((await findings()).map(({ id, state }) => `${state} ${id}`)).toEqual(
      [
        ...["configuration", "registration", "homeserver", "clock", "as-token", "namespaces", "reach"],
        ...["database", "permissions", "admin", "model", "embeddings", "sandbox", "web", "web-search"],
      ].map((id) => `ok ${id}`),
    );
    expect(existsSync(join(dir, "data"))).toBe(false);
  });

  it("may be at work: the bridge answers the ping, and its data folder is no error", async () => {
    const bridge = createServer((request, response) => {
      const agrees = request.headers.authorization === `Bearer ${loaded.right.hs_token}`;
      response.writeHead(request.method === "GET" || agrees ? 200 : 403).end('{"alive":true}');
    });
    await new Promise<void>((resolve) => bridge.listen(port, "127.0.0.1", resolve));
    await mkdir(join(dir, "held"));
    const unlock = await lockDirectory(join(dir, "held"));
    config.database = { dir: "held" };
    const seen = (await findings()).map(textOf);
    await unlock();
    bridge.closeAllConnections();
    await new Promise((resolve) => bridge.close(resolve));
    expect(seen.filter((line) => !line.startsWith("ok"))).toEqual([]);
    expect(seen.join("\n")).toContain("the bridge, which runs");
    expect(seen.join("\n")).toContain(`in use by process ${process.pid}`);
  });
});

describe("files", () => {
  it("names a mistake in config.yaml", async () => {
    config.permissons = {};
    expect(await troubles()).toEqual(one('unknown key "permissons", did you mean "permissions"?'));
  });

  it("names a registration that is not there", async () => {
    config.registration = "nowhere.yaml";
    expect(await troubles()).toEqual(one("nowhere.yaml cannot be read"));
  });

  it("names a registration that says something else than config.yaml", async () => {
    registration.url = "http://elsewhere:1";
    expect(await troubles()).toEqual(one("failed registration: "));
  });
});

describe("the homeserver", () => {
  it("is named when nobody answers", async () => {
    config.homeserver = { url: "http://127.0.0.1:1", serverName: server };
    expect(await troubles()).toEqual(one("failed homeserver: it does not answer at http://127.0.0.1:1: "));
  });

  it("is named when something else answers", async () => {
    config.homeserver = { url: model.url.replace("/v1", ""), serverName: server };
    expect(await troubles()).toEqual(one("is no Matrix homeserver (status 404)"));
  });

  it("is named when it does not know our as_token", async () => {
    registration.as_token = "another-token-of-ours";
    expect(await troubles()).toEqual(
      one("failed as-token: the homeserver does not know our as_token (401 M_UNKNOWN_TOKEN)"),
    );
  });

  it("is named when it has another name", async () => {
    const other = "example.org";
    registration = {
      ...createRegistration({ serverName: other, url: `http://127.0.0.1:${port}` }),
      ...tokens("right"),
    };
    config.homeserver = { url: toHomeserver.url, serverName: other };
    config.permissions = { "@mia:example.org": "admin" };
    expect(await troubles()).toEqual(one("failed server-name: the homeserver calls us @clevernet:clevernet.test"));
  });

  it("is named when it has loaded another sender", async () => {
    const fault = toHomeserver.respond(
      { status: 200, body: { user_id: `@clever:${server}` } },
      { when: ({ path }) => path.endsWith("/whoami") },
    );
    expect(await troubles()).toEqual(
      one(`failed sender: the homeserver has loaded a registration whose sender is @clever:${server}`),
    );
    fault.lift();
  });

  it("is named when it has loaded another namespace", async () => {
    Object.assign(registration, tokens("narrow"), { id: "narrow" });
    expect(await troubles()).toEqual(one("failed namespaces: the homeserver does not let us speak as @agent_"));
  });

  it("is named when the namespace is open to everybody", async () => {
    sparesName.lift();
    const open = toHomeserver.respond({ status: 200, body: { available: true } }, { when: asksForName });
    expect(await troubles()).toEqual(one("failed namespaces: anybody may register @agent_"));
    open.lift();
    spareName();
  });

  it("is named when it uses another hs_token", async () => {
    registration.hs_token = "another-token-of-theirs";
    expect(await troubles()).toEqual(one("failed hs-token: the homeserver uses another hs_token"));
  });

  it("is named when it has loaded another id", async () => {
    registration.id = "clevernet2";
    expect(await troubles()).toEqual(
      one('failed reach: the homeserver has loaded our token under another id than "clevernet2"'),
    );
  });

  it("is named when it has loaded no address", async () => {
    Object.assign(registration, tokens("deaf"), { id: "deaf" });
    expect(await troubles()).toEqual(one("failed reach: the registration that the homeserver has loaded has no url"));
  });

  it("is named when it asks where nobody listens", async () => {
    config.bridge = { url: `http://127.0.0.1:${port}`, port: await freePort() };
    expect(await troubles()).toEqual(
      one("failed reach: the homeserver cannot reach us at the url that it has loaded: "),
    );
  });

  it("is named when its ping reaches another program", async () => {
    const other = createServer((_request, response) => void response.writeHead(404).end());
    await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
    config.bridge = { url: `http://127.0.0.1:${port}`, port: await freePort() };
    const seen = await troubles();
    other.closeAllConnections();
    await new Promise((resolve) => other.close(resolve));
    expect(seen).toEqual(one("failed reach: the homeserver's ping reaches another program (status 404)"));
  });

  it("cannot reach a port that another program uses", async () => {
    config.bridge = { url: `http://127.0.0.1:${port}`, port: Number(new URL(model.url).port) };
    expect(await troubles()).toEqual(one(`failed port: nobody can listen on 127.0.0.1:${new URL(model.url).port}`));
  });

  it("has another time", async () => {
    const clock: Clock = { ...systemClock, now: () => new Date(Date.now() - 3_600_000) };
    expect(await troubles(clock)).toEqual([expect.stringMatching(/^warning clock: ours is 3\d{3} s behind/)]);
  });
});

describe("the database", () => {
  it("is named when the server does not answer", async () => {
    config.database = { url: "postgres://clevernet:secret@127.0.0.1:1/clevernet" };
    const [line] = await troubles();
    expect(line).toContain("failed database: database.url: PostgreSQL does not answer");
    expect(line).not.toContain("secret");
  });

  it("is named when its folder cannot be made", async () => {
    config.database = { dir: "config.yaml/data" };
    expect(await troubles()).toEqual(one("config.yaml/data"));
  });

  it("is named when its files are damaged", async () => {
    await mkdir(join(dir, "damaged/postgres/base"), { recursive: true });
    await writeFile(join(dir, "damaged/postgres/PG_VERSION"), "18\n");
    config.database = { dir: "damaged" };
    expect(await troubles()).toEqual(one("is damaged"));
  });

  it("has migrations to come, which is no error", async () => {
    config.database = { url: place.url };
    expect((await findings()).map(textOf).join("\n")).toContain("ok migrations: the next start applies 0001-");
  });

  it("is named when another program has migrated it, or a restore was not finished", async () => {
    await migrate(database);
    config.database = { url: place.url };
    for (const [name, says] of [
      ["9999-of-tomorrow.sql", "migrated by a newer Clevernet (9999-of-tomorrow.sql)"],
      [
        "0002-sessions.sql",
        "migrated by another Clevernet, perhaps an older one (it has 0002-sessions.sql where this one has 0002-turns.sql)",
      ],
      ["restore-unfinished", "a restore into it was not finished"],
    ] as const) {
      await database.sql`insert into migrations (name) values (${name})`;
      expect(await troubles()).toEqual(one(`failed migrations: `));
      expect(await troubles()).toEqual(one(says));
      await database.sql`delete from migrations where name = ${name}`;
    }
  });

  it("holds an agent whose file is refused", async () => {
    await seeded();
    await writeAgent("bad", '{"temperatur": 1}');
    expect(await troubles()).toEqual(one("failed agents: the agent bad runs on its last good settings"));
    await writeAgent("bad", "{");
    expect(await troubles()).toEqual(one("agents:/bad/agent.json: "));
  });

  it("holds an agent that is to delegate to somebody who is not there", async () => {
    await seeded();
    await writeAgent("bad", '{"subAgents": ["clerk", "clark"]}');
    expect(await troubles()).toContainEqual(
      expect.stringContaining("warning agents: the agent bad is to delegate to clark, and there is no sub-agent"),
    );
  });

  it("holds an agent whose keys are others than people are given", async () => {
    await seeded();
    const directory = new AgentDirectory(database, systemClock, silentLog);
    const agent = await directory.find("bad" as AgentName);
    const seeds = {
      master: `${"bQ".repeat(21)}A`,
      selfSigning: `${"cQ".repeat(21)}A`,
      userSigning: `${"dQ".repeat(21)}A`,
    };
    await database.sql`
      insert into crypto_machines (user_id, device_id, published_at, identity)
      values (${agent?.userId ?? ""}, 'BAD', now(), ${database.sql.json(seeds)})`;
    expect(await troubles()).toEqual([
      "warning devices: @agent_bad:clevernet.test: nobody can write to it in encrypted rooms: the homeserver does not have the keys of its device. → Write !encryption bad reset in the control room: it makes another device under the same identity.",
    ]);
    await database.sql`delete from crypto_machines`;
  });

  it("holds an agent that is not as config.yaml has it", async () => {
    await seeded();
    config.agents = { bad: { temperature: 0.5 } };
    expect(await troubles()).toEqual(
      one("warning differences: the database counts, and is not as config.yaml: agent bad: temperature."),
    );
  });

  /** The agent `bad` as config.yaml would make it. */
  async function seeded(): Promise<void> {
    config.database = { url: place.url };
    config.agents = { bad: {} };
    await findings();
    const { agents } = await loadConfig(join(dir, "config.yaml"));
    await migrate(database);
    const directory = new AgentDirectory(database, systemClock, silentLog);
    for (const agent of agents) await directory.seed(agent, server);
    await writeAgent("bad", "{}");
  }

  const writeAgent = (name: string, text: string) =>
    new Files(database).write({
      share: "agents",
      path: `/${name}/agent.json`,
      contentType: "application/json",
      text,
      owner: "@mia:clevernet.test",
    });
});

describe("permissions", () => {
  it("that let nobody in are named", async () => {
    config.permissions = { "clevernet.test": "none" };
    expect(await troubles()).toEqual(one("failed permissions: nobody may do anything"));
  });

  it("that let in strangers alone are named", async () => {
    config.permissions = { "@mia:example.org": "admin" };
    expect(await troubles()).toEqual(one("warning permissions: nobody of clevernet.test is let in"));
  });

  it("without an admin are named", async () => {
    config.permissions = { "clevernet.test": "operate" };
    expect(await troubles()).toEqual(one("warning admin: nobody is named as admin"));
  });
});

describe("the model", () => {
  it("is named when it does not answer", async () => {
    config.model = { baseUrl: "http://127.0.0.1:1/v1", name: "scripted" };
    expect(await troubles()).toEqual(one("failed model: The model scripted at 127.0.0.1:1 failed"));
  });

  it("is named when it refuses the key, which is not told", async () => {
    answers = [{ status: 401, error: "no such key: scripted" }];
    const [line] = await troubles();
    expect(line).toContain("answered 401");
    expect(line).toContain("→ Correct baseUrl, name and key of model in config.yaml.");
    expect(line).not.toContain("key: scripted");
  });

  it("is named when its money is spent", async () => {
    answers = [{ status: 402 }];
    expect(await troubles()).toEqual(one("Add credit with the provider"));
  });

  it("is named when it knows no tool calls", async () => {
    answers = ["I am ready."];
    expect(await troubles()).toEqual(one("warning model: scripted answers, but did not call the tool"));
  });

  it("is named when it refuses what is set of it", async () => {
    config.models = { think: { reasoning: "high" } };
    answers = [{ status: 400, error: "Unknown parameter: reasoning_effort" }];
    expect(await troubles()).toEqual(one("warning model: scripted refuses reasoning high, and is asked without it."));
  });

  it("is asked whether it answers where it only reads", async () => {
    config.models = { read: { name: "fast" } };
    answers = [ready, "I am ready."];
    const lines = (await findings()).map(textOf).filter((line) => line.includes("model: "));
    expect(lines).toEqual(["ok model: scripted answers and calls tools. → ", "ok model: fast answers. → "]);
  });

  it("is asked for each model that agents name", async () => {
    answers = [ready, { status: 404 }];
    config.agents = { helper: { model: "another" } };
    expect(await troubles()).toEqual(one("The model another at"));
  });
});

const tokens = (name: keyof typeof loaded) => {
  const { as_token, hs_token } = loaded[name];
  return { as_token, hs_token };
};
