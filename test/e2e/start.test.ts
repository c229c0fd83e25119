import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { createRegistration } from "../../src/adapters/matrix/registration.ts";
import { freePort } from "../support/free-port.ts";
import { copyEmbedded } from "../support/shared-embedded.ts";

const main = join(import.meta.dirname, "../../src/main.ts");
const serverName = "clevernet.test";
const servers: Server[] = [];
let dir: string;
let port: number;
let homeserverPort: number;
let config: Record<string, unknown> & { readonly bridge: Record<string, unknown> };

describe("a start that fails ends the process, and says why:", () => {
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "clevernet-start-"));
    [port, homeserverPort] = await Promise.all([freePort(), freePort()]);
    const url = `http://127.0.0.1:${port}`;
    await copyEmbedded(join(dir, "data"));
    await writeFile(join(dir, "registration.yaml"), stringify(createRegistration({ serverName, url })));
    config = {
      homeserver: { url: `http://127.0.0.1:${homeserverPort}`, serverName },
      bridge: { url, host: "127.0.0.1", port },
      registration: "registration.yaml",
      database: { dir: "data" },
      embeddings: { kind: "off" },
      model: { baseUrl: "http://127.0.0.1:1", apiKey: "none", name: "none" },
      permissions: { [`@admin:${serverName}`]: "admin" },
      agents: { helper: {} },
    };
    await writeFile(join(dir, "config.yaml"), stringify(config));
  });

  afterEach(async () => {
    for (const server of servers.splice(0)) server.close();
    await rm(dir, { recursive: true, force: true });
  });

  it("the homeserver refuses us", async () => {
    await listen(homeserverPort, "/_matrix/client/versions");
    expect(await start()).toContain("The homeserver refuses us");
  });

  it("the address is none of this machine's", async () => {
    await listen(homeserverPort, "/");
    await writeFile(
      join(dir, "config.yaml"),
      stringify({ ...config, bridge: { ...config.bridge, host: "192.0.2.1" } }),
    );
    expect(await start()).toMatch(/^clevernet: bridge.host: nobody can listen on 192.0.2.1:\d+ here/);
  });

  it("the data folder cannot be made", async () => {
    await writeFile(join(dir, "file"), "");
    await writeFile(join(dir, "config.yaml"), stringify({ ...config, database: { dir: "file/data" } }));
    expect(await start()).toMatch(/^clevernet: database.dir: .*file\/data cannot be made/);
  });

  it("the port is taken", async () => {
    await listen(homeserverPort, "/");
    await listen(port, "/");
    expect(await start()).toContain("is used by another program");
  });

  it("the port is taken, and the homeserver is away", async () => {
    await listen(port, "/");
    expect(await start()).toContain("is used by another program");
  });
});

it("a word that is no command is refused, with the command that was probably meant", async () => {
  expect(await run("chekc")).toMatch(/^clevernet: There is no command chekc. Did you mean check\? Commands: start, /);
});

/** Answers what is below the path with an empty object, and refuses everything else. */
async function listen(at: number, allowed: string): Promise<void> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith(allowed)) response.end("{}");
    else response.writeHead(403).end('{"errcode":"M_FORBIDDEN","error":"no"}');
  });
  servers.push(server.listen(at, "127.0.0.1"));
  await once(server, "listening");
}

/** Runs a start that ends by itself; returns what it has written. */
const start = (): Promise<string> => run("start", "--config", join(dir, "config.yaml"));

function run(...args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [main, ...args], { timeout: 30_000, killSignal: "SIGKILL" }, (error, stdout, stderr) => {
      if (error?.code === 1) resolve(stderr);
      else reject(new Error(`it ended with ${error?.code ?? error?.signal ?? 0}:\n${stdout}${stderr}`));
    });
  });
}
