import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { openDatabase } from "../../src/adapters/database/connection.ts";
import { createRegistration, writeRegistration } from "../../src/adapters/matrix/registration.ts";
import { answerEach } from "../support/answers.ts";
import { startBalancer } from "../support/balancer.ts";
import { BridgeProcess } from "../support/bridge-process.ts";
import { freePort } from "../support/free-port.ts";
import { eventually } from "../support/poll.ts";
import { createDatabase } from "../support/postgres.ts";
import { ScriptedModel } from "../support/scripted-model.ts";
import { median, type Table } from "./table.ts";

const serverName = "clevernet.test";
const roomCount = 200;
const rounds = 3;
const agents = Array.from({ length: 10 }, (_, index) => `agent${index}`);

/**
 * Turns per second of several processes on one PostgreSQL: one message in each of 200 rooms, all at once. The homeserver
 * only says yes: a real one would be what is measured.
 */
export async function processes(postgresUrl: string | undefined): Promise<Table[]> {
  if (postgresUrl === undefined) return [];
  const rows: string[][] = [];
  for (const count of [1, 2, 4]) {
    const rates = await measure(postgresUrl, count);
    rows.push([String(count), median(rates).toFixed(0), Math.max(...rates).toFixed(0)]);
  }
  return [
    {
      title: `Turns of several processes: ${roomCount} rooms × 1 message at once, ${rounds} rounds`,
      columns: ["processes", "turns/s", "best round"],
      rows,
      note: "a turn is one model call and one message sent; PostgreSQL, model and homeserver share the machine",
    },
  ];
}

async function measure(postgresUrl: string, count: number): Promise<number[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-"));
  const [place, model, homeserver] = [await createDatabase(postgresUrl), new ScriptedModel(), await startYesServer()];
  await model.start();
  model.onEvery(answerEach);
  const ports = await Promise.all(Array.from({ length: count }, freePort));
  const balancer = await startBalancer(ports);
  const url = `http://127.0.0.1:${balancer.port}`;
  const registration = createRegistration({ serverName, url });
  await writeRegistration(join(dir, "registration.yaml"), registration);
  const bridges = await Promise.all(
    ports.map(async (port) => {
      const file = join(dir, `${port}.yaml`);
      const owner = `@owner:${serverName}`;
      const config = {
        homeserver: { url: homeserver.url, serverName },
        bridge: { url, port },
        database: { url: place.url },
        embeddings: { kind: "off" },
        model: { baseUrl: model.url, apiKey: "scripted", name: "scripted" },
        permissions: { [`@*:${serverName}`]: "chat" },
        limits: { requester: 100_000, room: 100_000 },
        agents: Object.fromEntries(agents.map((name) => [name, { owner, maxConcurrentTurns: 32 }])),
      };
      await writeFile(file, stringify(config));
      return new BridgeProcess(file, `http://127.0.0.1:${port}`);
    }),
  );
  const database = await openDatabase({ url: place.url });
  const counted = async (from: string) =>
    (await database.sql.unsafe<{ n: number }[]>(`select count(*)::int as n from ${from}`))[0]?.n ?? 0;
  const push = async (id: string, events: object[]) => {
    const answer = await fetch(`${url}/_matrix/app/v1/transactions/${id}`, {
      method: "PUT",
      headers: { authorization: `Bearer ${registration.hs_token}` },
      body: JSON.stringify({ events }),
    });
    if (!answer.ok) throw new Error(`a transaction was answered with ${answer.status}`);
  };
  try {
    for (const bridge of bridges) await bridge.start();
    const shares = `(select session from shards where until > now() group by session) s`;
    await eventually(async () => (await counted(shares)) === count, { within: 60_000, what: "rooms to be shared" });
    const rooms = Array.from({ length: roomCount }, (_, index) => `!room${index}:${serverName}`);
    const join_ = (room: string, user: string) => event(room, user, "m.room.member", { membership: "join" }, user);
    const agentOf = (index: number) => `@agent_${agents[index % agents.length]}:${serverName}`;
    const joins = rooms.flatMap((room, index) => [join_(room, ann), join_(room, agentOf(index))]);
    await push("joins", joins);
    const pending = "events where routed_at is null";
    await eventually(async () => (await counted(pending)) === 0, { within: 60_000, what: "joins to be routed" });
    const rates: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const started = performance.now();
      const content = { msgtype: "m.text", body: `question ${round}` };
      for (let from = 0; from < roomCount; from += 20)
        await push(
          `${round}-${from}`,
          rooms.slice(from, from + 20).map((room) => event(room, ann, "m.room.message", content)),
        );
      const sent = "outbox where kind = 'message' and state = 'sent'";
      await eventually(async () => (await counted(sent)) >= round * roomCount, {
        within: 120_000,
        what: "all answers",
      });
      rates.push(roomCount / ((performance.now() - started) / 1000));
    }
    return rates;
  } finally {
    await Promise.all(bridges.map((bridge) => bridge.kill()));
    await Promise.all([balancer.stop(), database.close(), homeserver.stop(), model.stop()]);
    await place.drop();
    await rm(dir, { recursive: true });
  }
}

const ann = `@ann:${serverName}`;
let events = 0;
const event = (roomId: string, sender: string, type: string, content: object, stateKey?: string) => ({
  event_id: `$${++events}`,
  room_id: roomId,
  sender,
  type,
  content,
  origin_server_ts: Date.now(),
  ...(stateKey !== undefined && { state_key: stateKey }),
});

/** A homeserver that takes everything and knows nothing. */
async function startYesServer(): Promise<{ url: string; stop(): Promise<void> }> {
  let answers = 0;
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const body = {
        event_id: `$sent${++answers}`,
        room_id: `!own:${serverName}`,
        user_id: `@clevernet:${serverName}`,
        chunk: [],
        versions: ["v1.11"],
        next_batch: "s1",
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
