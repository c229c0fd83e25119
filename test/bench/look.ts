import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { AgentName, RoomId, UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { layout } from "../../src/base/prompt/layout.ts";
import { type Agent, AgentDirectory } from "../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../src/domain/agents/settings.ts";
import { commitSteps } from "../../src/domain/tables/commit-steps.ts";
import { mindOf } from "../support/mind.ts";
import { createDatabase } from "../support/postgres.ts";
import { newRoom, rightsOf, setMember, settleEvent, wake } from "../support/rows.ts";
import { median, ms, type Table } from "./table.ts";

/** Messages in the room when it begins. */
const histories = [10, 150, 1_000];
const entries = 200;
/** Turns before those that are measured. */
const warm = 30;
const turns = 60;

const words = "we could look at the plan for the summer, and ask those who were there last year what it costs; ".repeat(
  4,
);

/** Measures how a step looks: from the claimed turn to the messages for the model. */
export async function look(postgresUrl: string | undefined): Promise<Table[]> {
  const rows: string[][] = [];
  for (const messages of histories) {
    const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-look-"));
    const own = postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
    try {
      rows.push([`embedded, ${messages} messages`, ...(await measure({ dir: join(dir, "data") }, messages))]);
      if (own) rows.push([`PostgreSQL, ${messages} messages`, ...(await measure({ url: own.url }, messages))]);
    } finally {
      await own?.drop();
      await rm(dir, { recursive: true });
    }
  }
  return [
    {
      title: `Look: what the first step of each of ${turns} turns takes`,
      columns: ["", "time", "CPU, main thread", "CPU, all threads", "characters"],
      rows,
      note: `p50; a room of two, ${entries} entries in the ephemeris; the database is in a thread of ours where it is embedded`,
    },
  ];
}

async function measure(location: DatabaseLocation, messages: number): Promise<string[]> {
  const database = await openDatabase(location);
  try {
    await migrate(database);
    return await measureOn(database, messages);
  } finally {
    await database.close();
  }
}

async function measureOn(database: Database, messages: number): Promise<string[]> {
  const owner = "@owner:test" as UserId;
  const directory = new AgentDirectory(database, systemClock, silentLog);
  const name = "helper" as AgentName;
  await directory.seed({ name, owner, persona: "I help.", settings: parseAgentSettings({}, "bench") }, "test");
  const agent = (await directory.find(name)) as Agent;
  const mind = mindOf(database, {
    modelUrl: "http://127.0.0.1:1/v1",
    rights: await rightsOf(database, { test: "operate" }),
    tools: [],
  });
  const room = await pastOf(database, agent, messages);
  const [times, main, all]: number[][] = [[], [], []];
  let chars = 0;
  for (let n = 0; n < warm + turns; n += 1) {
    await wake(database, { agent: name, roomId: room }, { requester: owner });
    const turn = await mind.turns.claim({ agent: name, roomId: room }, 4);
    if (typeof turn === "string") throw new Error(turn);
    const [started, thread, process_] = [performance.now(), process.threadCpuUsage(), process.cpuUsage()];
    const { world, seenWithout, log } = await mind.view.see(agent, turn, {
      wakes: turn.wakes ?? [],
      entries: [],
      reminders: [],
      base: undefined,
      known: new Set(),
    });
    const { seen } = seenWithout(new Set());
    const { system, user } = layout(world, agent.settings.layout);
    if (n >= warm) {
      times?.push(performance.now() - started);
      main?.push(milliseconds(process.threadCpuUsage(thread)));
      all?.push(milliseconds(process.cpuUsage(process_)));
    }
    chars = system.length + user.length;
    await commitSteps(database, turn, [{ n: 0, name: "model", result: {}, seen, log, ends: true }]);
    await settleEvent(database, { roomId: room, sender: agent.userId });
  }
  return [...[times, main, all].map((values) => ms(median(values ?? []))), String(chars)];
}

const milliseconds = ({ user, system }: NodeJS.CpuUsage): number => (user + system) / 1000;

/** Time before all that `wake` stores. */
const before = new Date("2026-01-01T00:00:00Z");

/** A room in which the agent and its owner have talked by turns, and what the agent has done meanwhile. */
async function pastOf(database: Database, agent: Agent, messages: number): Promise<RoomId> {
  const room = newRoom();
  for (const userId of [agent.owner, agent.userId]) await setMember(database, room, userId, "join");
  await database.sql`
    insert into events (event_id, room_id, type, sender, sent_at, content, position, source, shown, routed_at)
    select '$old' || n, ${room}, 'm.room.message', case when n % 2 = 0 then ${agent.userId} else ${agent.owner} end, ${before}::timestamptz + n * interval '1 second',
      jsonb_build_object('msgtype', 'm.text', 'body', left(${words}, 20 + n * 37 % 300)), nextval('event_seq'), 'push', true, now()
    from generate_series(1, ${messages}::int) n`;
  await database.sql`
    insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sources, created_at)
    select ${agent.userId}, ${room}, -n, 1, 1,
      '<thought timestamp="2026-01-01T00:00:00Z">' || left(${words}, 20 + n * 37 % 300) || '</thought>', array[${room}],
      ${before}::timestamptz + n * interval '1 second'
    from generate_series(1, ${entries}::int) n`;
  return room;
}
