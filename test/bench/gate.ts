import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { AgentName, UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../src/domain/agents/settings.ts";
import type { StepCommit } from "../../src/domain/tables/steps.ts";
import { Turns } from "../../src/domain/tables/turns.ts";
import { tool as remove } from "../../src/edges/tools/fs-delete.ts";
import { tool as read } from "../../src/edges/tools/fs-read.ts";
import { tool as write } from "../../src/edges/tools/fs-write-file.ts";
import { tool as sendMessage } from "../../src/edges/tools/send-message.ts";
import { describe, type OperationRequest } from "../../src/engine/operations/operation.ts";
import type { Origin } from "../../src/engine/operations/origin.ts";
import { decide } from "../../src/engine/operations/protocol.ts";
import { toolContext } from "../../src/engine/operations/tool-context.ts";
import { mindOf } from "../support/mind.ts";
import { createDatabase } from "../support/postgres.ts";
import { newKey, newRoom, rightsOf, setMember, wake } from "../support/rows.ts";
import { median, percentile, type Table } from "./table.ts";

const rounds = 300;
const owner = "@owner:test" as UserId;

/** Measures how long the gate and the record of an operation take, beside the write of its step. */
export async function gate(postgresUrl: string | undefined): Promise<Table[]> {
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
      title: `The gate: ${rounds} operations of each kind, in turns`,
      columns: ["", "statements", "p50", "p95", "of a step"],
      rows,
      note: "of a step: share of the time that it takes to write an operation's step without a record",
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

/** Something that is measured: it may prepare what is not. */
type Work = () => Promise<() => Promise<unknown>>;

async function measureOn(name: string, database: Database): Promise<string[][]> {
  let statements = 0;
  const counted: Database = {
    ...database,
    run(statement) {
      statements += 1;
      return database.run(statement);
    },
  };
  const [room, other] = [newRoom(), newRoom()];
  const directory = new AgentDirectory(database, systemClock, silentLog);
  const settings = parseAgentSettings({ mode: "delete" }, "bench");
  await directory.seed({ name: "helper" as AgentName, owner, persona: "I help.", settings }, "test");
  const agent = (await directory.find("helper" as AgentName)) as Agent;
  for (const userId of [owner, agent.userId])
    for (const roomId of [room, other]) await setMember(database, roomId, userId, "join");
  const rights = await rightsOf(database, { test: "operate" });
  const mind = mindOf(counted, { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
  const origin = (): Origin => ({
    agent,
    roomId: room,
    thread: undefined,
    key: newKey(),
    chain: "chain",
    by: "model",
    requesters: [owner],
    sources: [room],
    taint: [],
    signal: new AbortController().signal,
  });
  const path = `rooms:/${room}/file.md`;
  const passes =
    ({ tool, input }: Pick<OperationRequest, "tool" | "input">): Work =>
    async () => {
      const from = origin();
      return async () => decide({ tool, input, todo: undefined }, await toolContext(mind, from));
    };
  const turns = new Turns(counted, "bench");
  await wake(database, { agent: agent.name, roomId: room });
  const turn = await turns.claim({ agent: agent.name, roomId: room }, 4);
  if (typeof turn === "string") throw new Error(turn);
  let n = 0;
  const commits =
    (isRecorded: boolean): Work =>
    async () => {
      const request = { tool: remove, input: { path }, todo: undefined };
      const call = { ...describe(request, "delete", origin()), n: n++, callId: "fc1.1" };
      const result = `<functionResult id="fc1.1"><result>${path} was deleted.</result></functionResult>`;
      const step: StepCommit = {
        n: call.n,
        name: "call FS_Delete",
        result: { result },
        ephemeris: [result],
        ...(isRecorded && { operations: [{ ...call, state: "done", result }] }),
      };
      return () => turns.commit(turn, step);
    };
  const works: Readonly<Record<string, Work>> = {
    "an answer here": passes({ tool: sendMessage, input: { content: "hello" } }),
    "a message elsewhere": passes({ tool: sendMessage, input: { roomId: other, content: "hello" } }),
    "a read": passes({ tool: read, input: { path } }),
    "a write": passes({ tool: write, input: { path, content: "text" } }),
    "a deletion": passes({ tool: remove, input: { path } }),
    "a step without a record": commits(false),
    "a step with its record": commits(true),
  };
  const times = Object.fromEntries(Object.keys(works).map((what) => [what, [] as number[]]));
  const asked: Record<string, number> = {};
  // In turns: whatever else the machine does meets all of them alike.
  for (let round = -20; round < rounds; round++) {
    for (const [what, prepare] of Object.entries(works)) {
      const work = await prepare();
      const before = statements;
      const started = systemClock.monotonic();
      await work();
      if (round < 0) continue;
      times[what]?.push(systemClock.monotonic() - started);
      asked[what] = statements - before;
    }
  }
  const step = median(times["a step without a record"] ?? []);
  return Object.entries(times).map(([what, all]) => [
    `${name}: ${what}`,
    String(asked[what]),
    `${Math.round(median(all) * 1_000)} µs`,
    `${Math.round(percentile(all, 0.95) * 1_000)} µs`,
    `${Math.round((100 * median(all)) / step)} %`,
  ]);
}
