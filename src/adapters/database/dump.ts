import { createWriteStream } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { UserError } from "../../base/lib/errors.ts";
import type { Database, Sql } from "./connection.ts";

/** First line of a dump. */
interface DumpHeader {
  readonly clevernet: 1;
  readonly migrations: readonly string[];
  /** In an order in which rows can be put in: each behind those that it refers to. */
  readonly tables: readonly string[];
}

/** Last line of a dump: a dump without it is not whole. */
export interface DumpEnd {
  readonly rows: number;
  /** Position of each sequence. */
  readonly sequences: Readonly<Record<string, string>>;
}

/** Rows that are fetched at once; a file among them may have many megabytes. */
const rowsAtOnce = 20;

/**
 * Writes everything into a file: gzipped lines, first the header, then `table TAB row as JSON`, then `TAB end`. The same
 * file can be restored into either database. The rows are those of one moment on PostgreSQL, where one statement
 * reads them; on the embedded database nobody else may write meanwhile. Jobs are left out: the tables say what there
 * is to do. The file has its name only when it is whole and on disk.
 */
export async function dump({ sql }: Database, file: string, signal?: AbortSignal): Promise<DumpEnd> {
  const header: DumpHeader = { clevernet: 1, migrations: await migrationsOf(sql), tables: await tablesOf(sql) };
  const end = { rows: 0, sequences: {} };
  const draft = `${file}.part`;
  await mkdir(dirname(file), { recursive: true });
  try {
    const lines = Readable.from(linesOf(sql, header, end), { objectMode: true });
    await pipeline(lines, createGzip(), createWriteStream(draft, { mode: 0o600 }), signal ? { signal } : {});
    await toDisk(draft);
    await rename(draft, file);
    await toDisk(dirname(file));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return end;
}

async function* linesOf(
  sql: Sql,
  header: DumpHeader,
  end: { rows: number; sequences: Record<string, string> },
): AsyncGenerator<string> {
  yield `${JSON.stringify(header)}\n`;
  const selects = header.tables.map((table) => `select '${table}' as name, to_jsonb(t)::text as row from "${table}" t`);
  const rows = sql.unsafe<{ name: string; row: string }[]>(selects.join(" union all ")).cursor(rowsAtOnce);
  for await (const some of rows) {
    end.rows += some.length;
    yield some.map(({ name, row }) => `${name}\t${row}\n`).join("");
  }
  const sequences = await sql<{ name: string; value: string }[]>`
    select sequencename as name, last_value::text as value from pg_sequences
    where schemaname = current_schema() and last_value is not null`;
  for (const { name, value } of sequences) end.sequences[name] = value;
  yield `\t${JSON.stringify(end)}\n`;
}

async function migrationsOf(sql: Sql): Promise<string[]> {
  const [table] = await sql<{ isThere: boolean }[]>`select to_regclass('migrations') is not null as "isThere"`;
  if (!table?.isThere) throw new UserError("There is nothing to dump: this database has not been used yet.");
  return (await sql<{ name: string }[]>`select name from migrations order by name`).map(({ name }) => name);
}

/**
 * Every table of ours but the list of migrations, the memory of devices, which may not go back in time, and vectors,
 * which are made anew; referred ones before those that refer.
 */
async function tablesOf(sql: Sql): Promise<string[]> {
  const tables = await sql<{ name: string; refers: string[] }[]>`
    select c.relname::text as name, coalesce(jsonb_agg(r.relname) filter (where r.relname <> c.relname), '[]') as refers
    from pg_class c
    left join pg_constraint f on f.conrelid = c.oid and f.contype = 'f'
    left join pg_class r on r.oid = f.confrelid
    where c.relkind in ('r', 'p') and not c.relispartition and c.relnamespace = current_schema()::regnamespace
      and c.relname not in ('migrations', 'crypto_rows', 'interaction_vectors', 'knowledge_vectors', 'embedding_models')
    group by c.relname order by c.relname`;
  const ordered: string[] = [];
  while (ordered.length < tables.length) {
    const next = tables.filter(
      ({ name, refers }) => !ordered.includes(name) && refers.every((other) => ordered.includes(other)),
    );
    if (next.length === 0) throw new Error("tables refer to one another in a circle");
    ordered.push(...next.map(({ name }) => name));
  }
  return ordered;
}

/** Makes what was written survive a power failure. */
async function toDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
