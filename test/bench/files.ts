import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { FileSystem } from "../../src/domain/files/file-system.ts";
import { grep } from "../../src/domain/files/grep.ts";
import { treeOf } from "../../src/domain/files/tree.ts";
import { actorOf, shares } from "../support/actor.ts";
import { createDatabase } from "../support/postgres.ts";
import { addAgent, newKey, newRoom, setMember } from "../support/rows.ts";
import { median, ms, type Table } from "./table.ts";

const treeFiles = 100_000;
const grepFiles = 10_000;
const linesPerFile = 40;
const repeats = 5;
const needle = "error 4[0-9]7 ";
const searchers = [
  ["GNU grep", "grep", ["-rnE"]],
  ["ripgrep", "rg", ["-n"]],
] as const;

const lineOf = (file: number, line: number): string =>
  `2026-11-21 12:00:${line} worker ${file % 17} finished job ${file * 31 + line} with ${line === 7 ? "error" : "status"} ${(file * 7 + line) % 1_000} in time`;
const textOf = (file: number): string =>
  Array.from({ length: linesPerFile }, (_, line) => lineOf(file, line)).join("\n");

/** A tree of many files, and lines found in many, in the database and on disk. */
export async function files(postgresUrl: string | undefined): Promise<Table[]> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-bench-files-"));
  try {
    const [first = [], second = []] = [
      await measure({ dir: join(dir, "data") }),
      postgresUrl ? await onServer(postgresUrl) : [],
    ];
    const disk = await onDisk(join(dir, "disk"));
    const rows = [["embedded", ...first], ...(postgresUrl ? [["PostgreSQL", ...second]] : []), ...disk];
    const columns = ["", `tree of ${treeFiles} files`, `grep over ${grepFiles} files, no line`, "some lines"];
    const note = `Median of ${repeats}; files to search have ${linesPerFile} lines each.`;
    return [{ title: "files", columns, rows, note }];
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function onServer(url: string): Promise<string[]> {
  const own = await createDatabase(url);
  try {
    return await measure({ url: own.url });
  } finally {
    await own.drop();
  }
}

async function measure(location: Parameters<typeof openDatabase>[0]): Promise<string[]> {
  const database = await openDatabase(location);
  try {
    await migrate(database);
    const system = await furnished(database);
    const tree = await timed(async () => treeOf(await system.list("agents:/tree"), "/tree", 3, 500));
    const look = (regex: string) =>
      timed(() =>
        grep(system, {
          glob: "agents:/logs/**",
          regex,
          surrounding: 0,
          limit: 1e6,
          signal: AbortSignal.timeout(60_000),
        }),
      );
    return [tree, await look("nothing of the kind"), await look(needle)].map(ms);
  } finally {
    await database.close();
  }
}

async function furnished(database: Database): Promise<FileSystem> {
  const agent = await addAgent(database);
  const room = newRoom();
  for (const user of [agent.userId, agent.owner]) await setMember(database, room, user, "join");
  await database.sql`
    insert into files (share, path, content_type, text_content, owner)
    select 'agents', '/tree/folder' || n % 100 || '/sub' || n % 1000 || '/file' || n || '.md', 'text/markdown', 'x', '@a:b'
    from generate_series(1, ${treeFiles}) n`;
  for (let from = 0; from < grepFiles; from += 500) {
    const numbers = Array.from({ length: 500 }, (_, index) => from + index);
    await database.sql`
      insert into files (share, path, content_type, text_content, owner)
      select 'agents', '/logs/' || name, 'text/plain', text, '@a:b'
      from unnest(${numbers.map((n) => `day${n % 50}/log${n}.txt`)}::text[], ${numbers.map(textOf)}::text[]) f (name, text)`;
  }
  await database.sql`analyze files`;
  return new FileSystem(shares(database), actorOf(agent, room), newKey());
}

/** A row for each searcher that is installed. */
async function onDisk(dir: string): Promise<string[][]> {
  for (let n = 0; n < grepFiles; n++) {
    const folder = join(dir, "logs", `day${n % 50}`);
    if (n < 50) await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `log${n}.txt`), textOf(n));
  }
  const run = promisify(execFile);
  const rows: string[][] = [];
  for (const [name, command, flags] of searchers) {
    const isInstalled = await run(command, ["--version"]).then(
      () => true,
      () => false,
    );
    if (!isInstalled) continue;
    // One that finds nothing ends with an error.
    const look = (regex: string) =>
      timed(() => run(command, [...flags, regex, join(dir, "logs")], { maxBuffer: 1 << 28 }).catch(() => {}));
    rows.push([`${name}, on disk`, "–", ms(await look("nothing of the kind")), ms(await look(needle))]);
  }
  return rows;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < repeats; n++) {
    const started = performance.now();
    await work();
    times.push(performance.now() - started);
  }
  return median(times);
}
