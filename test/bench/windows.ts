import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { AgentName, UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { layout } from "../../src/base/prompt/layout.ts";
import { type Agent, AgentDirectory } from "../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../src/domain/agents/settings.ts";
import { Files } from "../../src/domain/tables/files.ts";
import { tool as openFile } from "../../src/edges/tools/fs-open-file.ts";
import { tool as windowAction } from "../../src/edges/tools/window-action.ts";
import { toolContext } from "../../src/engine/operations/tool-context.ts";
import { exampleWorld } from "../base/prompt/worlds.ts";
import { mindOf } from "../support/mind.ts";
import { createDatabase } from "../support/postgres.ts";
import { newKey, newRoom, rightsOf, setMember } from "../support/rows.ts";
import { median, ms, percentile, type Table } from "./table.ts";

const megabytes = 10;
/** Without them the first would measure how Node compiles. */
const warm = 10;
const rounds = 20;

/** A window on a large file: opened, scrolled, and shown with everything else that a step of a turn shows. */
export async function windows(postgresUrl: string | undefined): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-"));
  const own = postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
  const rows: string[][] = [];
  try {
    rows.push(...(await measure("embedded", { dir: join(dir, "data") })));
    if (own) rows.push(...(await measure("postgres", { url: own.url })));
  } finally {
    await own?.drop();
    await rm(dir, { recursive: true });
  }
  return [
    {
      title: `Windows: a file of ${megabytes} MB, ${rounds} times each`,
      columns: ["", "p50", "p95"],
      rows,
      note: "open: the tool, the file changed since (first) or not; the others with the file at hand; goal ≤ 20 ms each",
    },
  ];
}

async function measure(name: string, location: DatabaseLocation): Promise<string[][]> {
  const database = await openDatabase(location);
  try {
    await migrate(database);
    return await measureOn(name, database);
  } finally {
    await database.close();
  }
}

async function measureOn(name: string, database: Database): Promise<string[][]> {
  const room = newRoom();
  const owner = "@owner:test" as UserId;
  const directory = new AgentDirectory(database, systemClock, silentLog);
  const seed = { name: "reader" as AgentName, owner, persona: "I read.", settings: parseAgentSettings({}, "bench") };
  await directory.seed(seed, "test");
  const agent = (await directory.find(seed.name)) as Agent;
  for (const userId of [owner, agent.userId]) await setMember(database, room, userId, "join");
  const rights = await rightsOf(database, { test: "operate" });
  const mind = mindOf(database, { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
  const path = "agents:/reader/large.txt";
  const line = "what stands in a line of a large file, neither short nor long\n";
  const text = line.repeat(Math.ceil((megabytes * 1_000_000) / line.length));
  const write = (change: number) =>
    new Files(database).write({
      share: "agents",
      path: "/reader/large.txt",
      contentType: "text/plain",
      text: `${change}\n${text}`,
      owner,
    });
  const context = () => {
    const signal = new AbortController().signal;
    const origin = {
      agent,
      roomId: room,
      thread: undefined,
      chain: "chain",
      by: "model" as const,
      requesters: [owner],
      sources: [room],
      taint: [],
    };
    return toolContext(mind, { ...origin, key: newKey(), signal });
  };
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const started = systemClock.monotonic();
    await work();
    return systemClock.monotonic() - started;
  };
  const repeat = async (
    what: string,
    work: (round: number) => Promise<unknown>,
    before = async (_round: number) => {},
  ) => {
    const times: number[] = [];
    for (let round = 0; round < warm + rounds; round += 1) {
      await before(round);
      const time = await timed(() => work(round));
      if (round >= warm) times.push(time);
    }
    return [`${name}: ${what}`, ms(median(times)), ms(percentile(times, 0.95))];
  };
  const open = async () => openFile.run({ path }, await context(), "read");
  await write(-1);
  const fresh = await repeat("open, changed", open, async (round) => void (await write(round)));
  const again = await repeat("open, unchanged", open);
  const { windows } = await mind.windows.desks.of(agent, room);
  const windowId = windows[0]?.windowId ?? "";
  const scroll = await repeat("scroll", async () =>
    windowAction.run({ windowId, action: "scroll", argument: "1000" }, await context(), "read"),
  );
  const render = await repeat("read the desk, render", async () => {
    const desk = await mind.windows.desks.of(agent, room);
    layout({ ...exampleWorld, windows: desk.windows }, "cacheable");
  });
  return [fresh, again, scroll, render];
}
