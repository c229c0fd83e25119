import { readdir, readFile } from "node:fs/promises";
import type { Database } from "./connection.ts";

const folder = new URL("../../migrations/", import.meta.url);

/**
 * Brings the schema up to date; returns the names of the files that were applied. Migrations only go forward, each
 * file is one implicit transaction, and two processes that start together do not collide.
 */
export async function migrate({ sql }: Database): Promise<string[]> {
  await sql`create table if not exists migrations (name text primary key, applied_at timestamptz not null default now())`;
  const applied: string[] = [];
  for (const name of (await readdir(folder)).filter((file) => file.endsWith(".sql")).sort()) {
    const [done] = await sql`select 1 from migrations where name = ${name}`;
    if (done) continue;
    const text = await readFile(new URL(name, folder), "utf8");
    // The insert comes first: a process that lost the race fails on it before it touches anything.
    await sql.unsafe(`insert into migrations (name) values ('${name}');\n${text}`).simple();
    applied.push(name);
  }
  return applied;
}
