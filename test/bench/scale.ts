import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { createRegistration, writeRegistration } from "../../src/adapters/matrix/registration.ts";
import { digest } from "../../src/base/lib/ids.ts";
import { BridgeProcess } from "../support/bridge-process.ts";
import { freePort } from "../support/free-port.ts";
import { createDatabase } from "../support/postgres.ts";
import { seconds, type Table } from "./table.ts";
import { cpuMs, residentMb } from "./usage.ts";

const serverName = "scale.test";
const sizes = [1, 1_000, 10_000];
const encryptedSize = 1_000;
const roomsPerAgent = 2;
const eventsPerRoom = 5;
/** The sweep is at work then. */
const settleMs = 10_000;

/** Start and memory with many agents, which the database already knows and the homeserver, too. */
export async function scale(postgresUrl: string | undefined): Promise<Table[]> {
  if (postgresUrl === undefined) return [];
  const homeserver = await startStandIn();
  const rows: string[][] = [];
  try {
    for (const agents of sizes) rows.push(await measure(postgresUrl, homeserver, agents));
    rows.push(await measure(postgresUrl, homeserver, encryptedSize, encryptRooms));
  } finally {
    homeserver.server.close();
    homeserver.server.closeAllConnections();
  }
  return [
    {
      title: "Scale: start and memory of the bridge's process, on PostgreSQL",
      columns: [
        "agents",
        "rooms",
        "ready after",
        "CPU until then",
        "memory at start",
        `after ${settleMs / 1000} s`,
        "syncs until then",
      ],
      rows,
      note: "a stand-in for the homeserver answers every request at once; nobody says anything; budget 10 s, 512 MB",
    },
  ];
}

async function measure(
  postgresUrl: string,
  homeserver: StandIn,
  agents: number,
  encrypt?: (database: Database) => Promise<void>,
): Promise<string[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-scale-"));
  const own = await createDatabase(postgresUrl);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const bridge = new BridgeProcess(join(dir, "config.yaml"), url);
  try {
    const database = await openDatabase({ url: own.url });
    await migrate(database);
    await populate(database, agents);
    await encrypt?.(database);
    await database.close();
    await writeRegistration(join(dir, "registration.yaml"), createRegistration({ serverName, url }));
    const config = {
      homeserver: { url: `http://127.0.0.1:${(homeserver.server.address() as AddressInfo).port}`, serverName },
      bridge: { url, host: "127.0.0.1", port },
      database: { url: own.url },
      embeddings: { kind: "off" },
      model: { baseUrl: "http://127.0.0.1:1", name: "none" },
      permissions: { [`@owner:${serverName}`]: "admin" },
    };
    await writeFile(join(dir, "config.yaml"), stringify(config));
    homeserver.syncs = 0;
    const start = performance.now();
    await bridge.start();
    const ready = performance.now() - start;
    const cpu = await cpuMs(bridge.pid);
    const atStart = await residentMb(bridge.pid);
    await sleep(settleMs);
    const later = await residentMb(bridge.pid);
    const memory = [atStart, later].map((mb) => `${mb.toFixed(0)} MB`);
    const size = encrypt ? `${agents}, encrypted` : String(agents);
    return [size, String(agents * roomsPerAgent), seconds(ready), seconds(cpu), ...memory, String(homeserver.syncs)];
  } finally {
    await bridge.kill();
    await own.drop();
    await rm(dir, { recursive: true });
  }
}

/** Agents that have long been introduced, each in rooms of its own with two people and something said. */
async function populate({ sql }: Database, count: number): Promise<void> {
  const agents = Array.from({ length: count }, (_, n) => ({ name: `a${n}`, profile: digest("profile", `a${n}`, "") }));
  await sql`
    insert into agents (name, user_id, owner, suffix, device_id, registered_at, profile, sync_token)
    select name, '@agent_' || name || ${`:${serverName}`}, ${`@owner:${serverName}`}, 'abcd', 'DEVICE' || name, now(), profile, 's0'
    from jsonb_to_recordset(${sql.json(agents)}) as a(name text, profile text)`;
  const settings = JSON.stringify({
    systemPrompt: "You are a helpful assistant.".repeat(10),
    wakeUpTimerSeconds: null,
  });
  await sql`
    insert into files (share, path, content_type, text_content, owner)
    select 'agents', '/' || name || '/agent.json', 'application/json', ${settings}, owner from agents`;
  await sql`
    insert into rooms (room_id, shown_events, shown_chars, last_shown_at)
    select '!' || r || name, ${eventsPerRoom}::int, 100, now() from agents, generate_series(1, ${roomsPerAgent}::int) r`;
  await sql`
    insert into members (room_id, user_id, membership, kind, position, joined_position)
    select '!' || r || a.name, m.user_id, 'join', m.kind, 0, 0
    from agents a, generate_series(1, ${roomsPerAgent}::int) r,
      lateral (values (a.user_id, 'agent'), ('@one' || a.name || ':other', 'human'), ('@two' || a.name || ':other', 'human')) m(user_id, kind)`;
  await sql`
    insert into events (event_id, room_id, type, sender, sent_at, content, position, source, routed_at, shown)
    select '$' || room_id || n, room_id, 'm.room.message', '@one:other', now(), '{"msgtype":"m.text","body":"hello"}', n, 'push', now(), true
    from rooms, generate_series(1, ${eventsPerRoom}::int) n`;
  await sql`analyze`;
}

interface StandIn {
  readonly server: Server;
  /** Syncs that it was asked for. */
  syncs: number;
}

/** Makes all rooms encrypted; every agent has a device that is known to the homeserver. */
async function encryptRooms({ sql }: Database): Promise<void> {
  await sql`
    insert into room_state (room_id, type, sender, content, position)
    select room_id, 'm.room.encryption', '@one:other', '{"algorithm":"m.megolm.v1.aes-sha2"}', 0 from rooms`;
  await sql`
    insert into crypto_machines (user_id, device_id, since, pulled_at, published_at, identity)
    select user_id, device_id, 's0', now(), now(), '{"master":"","selfSigning":"","userSigning":""}' from agents`;
  await sql`
    insert into crypto_rows (user_id, store, key, value)
    select user_id, 'core', 'row' || n, repeat('x', 500) from agents, generate_series(1, 30) n`;
}

/** Answers every request with success, and as little as may stand in the answer. */
async function startStandIn(): Promise<StandIn> {
  const answers: readonly [RegExp, object][] = [
    [/\/versions$/, { versions: ["v1.11"] }],
    [/\/whoami/, { user_id: `@clevernet:${serverName}` }],
    [/\/sync/, { next_batch: "s1" }],
    [/\/createRoom|\/directory\/room/, { room_id: `!bot:${serverName}` }],
    [/\/state|\/send/, { event_id: "$event" }],
  ];
  const server = createServer((request, response) => {
    if (request.url?.includes("/sync")) standIn.syncs += 1;
    const [, answer = {}] = answers.find(([path]) => path.test(request.url?.split("?")[0] ?? "")) ?? [];
    request
      .resume()
      .on("end", () => response.setHeader("content-type", "application/json").end(JSON.stringify(answer)));
  });
  const standIn: StandIn = { server, syncs: 0 };
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return standIn;
}
