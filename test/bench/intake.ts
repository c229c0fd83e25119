import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import autocannon from "autocannon";
import { freePort } from "../support/free-port.ts";
import { createDatabase } from "../support/postgres.ts";
import { median, type Table } from "./table.ts";

const rounds = 3;
const secondsPerRun = 2;
const loads = [1, 4].flatMap((connections) => [1, 10, 100].map((size) => ({ size, connections })));

/** Of the stock library's rate. */
const goals: Readonly<Record<string, string>> = { embedded: "≥ 0.15", postgres: "≥ 0.25" };

interface Server {
  readonly name: string;
  readonly url: string;
  stop(): Promise<void>;
}

/** Transactions as Synapse sends them, against the stock library and against our route and intake, round by round. */
export async function intake(postgresUrl: string | undefined): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-"));
  const database = postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
  const servers: Server[] = [];
  try {
    servers.push(await startServer("stock", "stock"));
    servers.push(await startServer("embedded", JSON.stringify({ dir: join(dir, "data") })));
    if (database) servers.push(await startServer("postgres", JSON.stringify({ url: database.url })));
    for (const server of servers) await transactionsPerSecond(server, { size: 10, connections: 4 });
    const rows: string[][] = [];
    for (const load of loads) rows.push(...(await measure(servers, load)));
    return [
      {
        title: "Intake: transactions stored and acknowledged (the router does not run)",
        columns: ["events, connections", "by", "events/s", "transactions/s", "beside stock", "goal"],
        rows,
        note: "stock: the bridge library's AppService, whose handler does nothing and which stores nothing",
      },
    ];
  } finally {
    for (const server of servers) await server.stop();
    await database?.drop();
    await rm(dir, { recursive: true });
  }
}

interface Load {
  /** Events in a transaction. */
  readonly size: number;
  readonly connections: number;
}

async function measure(servers: readonly Server[], load: Load): Promise<string[][]> {
  const rates = new Map<Server, number[]>(servers.map((server) => [server, []]));
  for (let round = 0; round < rounds; round++)
    for (const [server, measured] of rates) measured.push(await transactionsPerSecond(server, load));
  const [stock = []] = rates.values();
  return [...rates].map(([{ name }, measured]) => {
    const ratio = median(measured.map((rate, round) => rate / (stock[round] ?? Number.NaN)));
    const rate = median(measured);
    return [
      `${load.size}, ${load.connections}`,
      name,
      (rate * load.size).toFixed(0),
      rate.toFixed(0),
      ratio.toFixed(2),
      goals[name] ?? "",
    ];
  });
}

async function transactionsPerSecond({ name, url }: Server, { size, connections }: Load): Promise<number> {
  const result = await autocannon({
    url,
    connections,
    duration: secondsPerRun,
    requests: [
      {
        method: "PUT",
        headers: { authorization: "Bearer hs", "content-type": "application/json" },
        setupRequest: (request) => ({ ...request, ...nextTransaction(size) }),
      },
    ],
  });
  if (result.non2xx + result.errors > 0)
    throw new Error(`${name} refused ${result.non2xx} transactions, and ${result.errors} connections broke`);
  return result.requests.total / result.duration;
}

let sent = 0;

/** Every event of the whole run has an id of its own. */
function nextTransaction(size: number): { path: string; body: string } {
  const events = Array.from({ length: size }, () => ({
    type: "m.room.message",
    room_id: `!room${++sent % 50}:test`,
    event_id: `$${sent}-abcdefghijklmnopqrstuvwxyz0123456789`,
    sender: "@ann:test",
    user_id: "@ann:test",
    origin_server_ts: Date.now(),
    content: {
      msgtype: "m.text",
      body: "Hello there, this is a typical message of a chat: some eighty characters long.",
      "m.mentions": {},
    },
    unsigned: { age: 12 },
  }));
  return { path: `/_matrix/app/v1/transactions/${sent}`, body: JSON.stringify({ events }) };
}

async function startServer(name: string, location: string): Promise<Server> {
  const port = await freePort();
  const script = fileURLToPath(import.meta.resolve("./intake-server.ts"));
  const child = spawn(process.execPath, [script, String(port), location], { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "exit");
  await Promise.race([
    once(child.stdout, "data"),
    ended.then(([code]) => Promise.reject(new Error(`the server "${name}" ended with ${code}`))),
  ]);
  return {
    name,
    url: `http://127.0.0.1:${port}`,
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
