import { readdir, readFile } from "node:fs/promises";
import type { Database } from "./connection.ts";

const folder = new URL("../../migrations/", import.meta.url);

/**
 * Brings the schema up to date; returns the names of the files that were applied. Migrations only go forward, each
 * file is one implicit transaction, and two processes that start together do not collide.
 */
export async function migrate({ sql }: Database): Promise<string[]> {
  const create = () =>
    sql`create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())`;
  // Two at once may fail nevertheless; the second attempt finds the table.
  await create().catch(create);
  const applied: string[] = [];
  for (const name of (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort()) {
    const [done] = await sql`select 1 from migrations where name = ${name}`;
    if (done) continue;
    const text = await readFile(new URL(name, folder), "utf8");
    // The insert comes first: a process that lost the race waits for the other there, and fails before it touches anything.
    const mine = await sql
      .unsafe(`insert into migrations (name) values ('${name}');\n${text}`)
      .simple()
      .then(() => true, unlessRaced);
    if (mine) applied.push(name);
  }
  return applied;
}

/** Another process has applied the migration a moment before us. */
function unlessRaced(error: unknown): false {
  if (error instanceof Error && "constraint_name" in error && error.constraint_name === "migrations_pkey") return false;
  throw error;
}
