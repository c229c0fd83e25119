import { readdir, readFile } from "node:fs/promises";
import { UserError } from "../../base/lib/errors.ts";
import type { Database, Sql } from "./connection.ts";

const folder = new URL("../../../migrations/", import.meta.url);

const undefinedTable = "42P01";

/** A row among the migrations while a restore is under way: no program starts on half of the data. */
export const unfinishedRestore = "restore-unfinished";

/** The names of this program's migrations, in their order. */
export const migrationFiles = async (): Promise<string[]> =>
  (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort();

/**
 * Brings the schema up to date; returns the names of the files that were applied. Migrations only go forward, each
 * file is one implicit transaction, and two processes that start together do not collide.
 * @param files the first of this program's migrations, where not all of them are wanted yet
 * @throws UserError where the schema is that of a newer program, or a restore was not finished
 */
export async function migrate({ sql }: Database, files?: readonly string[]): Promise<string[]> {
  const known = await migrationFiles();
  const done = new Set(await readApplied(sql));
  const unknown = [...done].filter((name) => !known.includes(name));
  if (unknown.length > 0 && !files) throw new UserError(`database: ${saysUnknown(unknown, known)}`);
  const applied: string[] = [];
  for (const name of files ?? known) {
    if (done.has(name)) continue;
    const text = await readFile(new URL(name, folder), "utf8");
    // The insert comes first: a process that lost the race waits for the other there, and fails before it touches anything.
    const isMine = await sql
      .unsafe(`insert into migrations (name) values ('${name}');\n${text}`)
      .simple()
      .then(() => true, unlessRaced);
    if (isMine) applied.push(name);
  }
  return applied;
}

async function readApplied(sql: Sql): Promise<string[]> {
  const read = async () => (await sql<{ name: string }[]>`select name from migrations`).map(({ name }) => name);
  const create = () =>
    sql`create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())`;
  return read().catch(async (error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === undefinedTable)) throw error;
    // Two at once may fail nevertheless; the second attempt finds the table.
    await create().catch(create);
    return read();
  });
}

const numberOf = (name: string): number => Number.parseInt(name, 10);

/**
 * Names the maker of migrations that this program does not know, in words that follow "by": a newer version, where all
 * of them come after ours.
 */
export function makerOf(unknown: readonly string[], known: readonly string[]): string {
  const last = Math.max(0, ...known.map(numberOf));
  const [other] = unknown.filter((name) => !(numberOf(name) > last));
  if (other === undefined) return `a newer Clevernet (${unknown.join(", ")})`;
  const ours = known.find((name) => numberOf(name) === numberOf(other));
  return `another Clevernet, perhaps an older one (it has ${other}${ours === undefined ? ", which this one lacks" : ` where this one has ${ours}`})`;
}

/** Why nothing starts on a database with these migrations, and what to do. */
export const saysUnknown = (unknown: readonly string[], known: readonly string[]): string =>
  unknown.includes(unfinishedRestore)
    ? "a restore into it was not finished. Empty it (a folder: move it away; PostgreSQL: make a new database), and restore again."
    : `it was migrated by ${makerOf(unknown, known)}. Run that version, or restore a dump of before.`;

/** Another process has applied the migration a moment before us. */
function unlessRaced(error: unknown): false {
  if (error instanceof Error && "constraint_name" in error && error.constraint_name === "migrations_pkey") return false;
  throw error;
}
