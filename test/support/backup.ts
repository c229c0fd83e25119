import { cp, rm } from "node:fs/promises";
import postgres from "postgres";

/** Where a bridge has its data; it does not run while they are copied. */
type Location = { readonly dir: string } | { readonly url: string };

/** Copies all that a database holds, as an operator copies its folder, or a server its data. Returns how to put it back. */
export async function copyDatabase(location: Location): Promise<() => Promise<void>> {
  if ("dir" in location) {
    const kept = `${location.dir}.copy`;
    await replaceFolder(location.dir, kept);
    return () => replaceFolder(kept, location.dir);
  }
  const name = new URL(location.url).pathname.slice(1);
  const kept = `${name}_copy`;
  await replaceDatabase(location.url, name, kept);
  return () => replaceDatabase(location.url, kept, name);
}

async function replaceFolder(from: string, to: string): Promise<void> {
  await rm(to, { recursive: true, force: true });
  await cp(from, to, { recursive: true });
}

async function replaceDatabase(url: string, from: string, to: string): Promise<void> {
  const server = new URL(url);
  server.pathname = "/postgres";
  const sql = postgres(server.href, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(`drop database if exists ${to} with (force)`);
    await sql.unsafe(`create database ${to} template ${from}`);
  } finally {
    await sql.end();
  }
}
