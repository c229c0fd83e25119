import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Database, type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { nobodyElse } from "../../src/adapters/database/notify.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { Machines } from "../../src/domain/crypto/machines.ts";
import { KeyServer } from "../support/key-server.ts";
import { createDatabase } from "../support/postgres.ts";
import { addAgent, newRoom, newUser } from "../support/rows.ts";
import { SecretDevice } from "../support/secret-device.ts";
import { median, ms, type Table } from "./table.ts";

const agents = 150;
const messagesEach = 5;

/** Measures open devices: what each keeps in memory, and how long it takes to open one that is there. */
export async function devices(postgresUrl: string | undefined): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-devices-"));
  const own = postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
  try {
    const rows = [["embedded", ...(await measure({ dir: join(dir, "data") }))]];
    if (own) rows.push(["PostgreSQL", ...(await measure({ url: own.url }))]);
    return [
      {
        title: `Devices: ${agents} agents, each with a room in which it has encrypted ${messagesEach} messages for a person`,
        columns: ["", "memory of an open device", "goal", "made", "opened again", "message"],
        rows,
        note: "memory: resident, of the process, after garbage was collected, open against closed; p50 of the times",
      },
    ];
  } finally {
    await own?.drop();
    await rm(dir, { recursive: true });
  }
}

async function measure(location: DatabaseLocation): Promise<string[]> {
  const database = await openDatabase(location);
  try {
    await migrate(database);
    return await measureOn(database);
  } finally {
    await database.close();
  }
}

async function measureOn(database: Database): Promise<string[]> {
  const server = new KeyServer();
  const open = (most: number) =>
    new Machines({
      database,
      client: server.client,
      log: silentLog,
      most,
      session: "bench",
      notifier: nobodyElse,
      clock: systemClock,
      onKeys() {},
      onRenewed() {},
      onShared() {},
      onCommitted() {},
    });
  const users: UserId[] = [];
  for (let n = 0; n < agents; n++) users.push((await addAgent(database)).userId);
  // The first loads what all of them run on, and one device is made and read before anything counts.
  const making = open(agents);
  const made = await timeEach(users, (user) => making.run(user, async () => {}));
  const ann = newUser();
  await SecretDevice.make(server, ann);
  const rooms = new Map(users.map((user) => [user, newRoom()]));
  const say = (machines: Machines, user: UserId) =>
    machines.run(user, (machine) => {
      const room = {
        roomId: rooms.get(user) ?? newRoom(),
        readers: [user, ann],
        visibility: "shared",
        encryption: { algorithm: "m.megolm.v1.aes-sha2" },
      };
      return machine.seal(room, { type: "m.room.message", content: { msgtype: "m.text", body: "hello" } });
    });
  for (let n = 0; n < messagesEach; n++) for (const user of users) await say(making, user);
  await making.close();
  const machines = open(agents);
  const closed = resident();
  const opened = await timeEach(users, (user) => machines.run(user, async () => {}));
  const said = await timeEach(users, (user) => say(machines, user));
  const kB = (resident() - closed) / agents / 1_000;
  await machines.close();
  return [`${kB.toFixed(0)} kB`, "≤ 120 kB", ...[made, opened, said].map((times) => ms(median(times)))];
}

async function timeEach(users: readonly UserId[], job: (user: UserId) => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (const user of users) {
    const start = performance.now();
    await job(user);
    times.push(performance.now() - start);
  }
  return times;
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

function resident(): number {
  collectGarbage();
  return process.memoryUsage.rss();
}
