import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Database, Sql } from "./connection.ts";
import type { DumpEnd } from "./dump.ts";
import { makerOf, migrate, migrationFiles, unfinishedRestore } from "./migrate.ts";

const headerSchema = z.object({
  clevernet: z.literal(1),
  migrations: z.array(z.string()),
  tables: z.array(z.string()),
});
const endSchema = z.object({ rows: z.number(), sequences: z.record(z.string(), z.string()) });

const rowsAtOnce = 500;
const charsAtOnce = 4_000_000;

/**
 * Puts a dump into an empty database, of either kind, and brings its schema up to date. The dump is read through
 * before anything is changed; until all of it is in, no bridge starts on the database.
 * @throws UserError when the dump is not whole or is of another program, or the database is not empty
 */
export async function restore(database: Database, file: string): Promise<DumpEnd> {
  const { sql } = database;
  const { header, end } = await readThrough(file);
  const known = await migrationFiles();
  const unknown = header.migrations.filter((name) => !known.includes(name));
  if (unknown.length > 0) {
    throw new UserError(`${file} was dumped by ${makerOf(unknown, known)}: restore it with that version.`);
  }
  await refuseFilled(sql, header.migrations);
  await migrate(database, []);
  await sql`insert into migrations (name) values (${unfinishedRestore}) on conflict do nothing`;
  await migrate(database, header.migrations);
  // Rows that migrations put in are in the dump, too.
  if (header.tables.length > 0)
    await sql.unsafe(`truncate ${header.tables.map((name) => `"${name}"`).join(", ")} cascade`);
  let some: string[] = [];
  let table = "";
  let chars = 0;
  const flush = async (): Promise<void> => {
    if (some.length > 0) await insert(sql, table, some);
    some = [];
    chars = 0;
  };
  for await (const line of linesOf(file)) {
    const { name, json } = split(line);
    if (json === undefined || name === "") continue;
    if (name !== table || some.length >= rowsAtOnce || chars > charsAtOnce) await flush();
    table = name;
    some.push(json);
    chars += json.length;
  }
  await flush();
  for (const [name, value] of Object.entries(end.sequences)) {
    await sql`select setval(${name}::text::regclass, ${value}::text::bigint)`;
  }
  await sql`delete from migrations where name = ${unfinishedRestore}`;
  await migrate(database);
  return end;
}

/** Inserts rows with the columns that both databases have, without those that the database computes. */
async function insert(sql: Sql, table: string, rows: readonly string[]): Promise<void> {
  const keys = Object.keys(JSON.parse(rows[0] ?? "{}") as object);
  const columns = await sql<{ name: string }[]>`
    select column_name as name from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} and is_generated = 'NEVER'`;
  const list = columns
    .filter(({ name }) => keys.includes(name))
    .map(({ name }) => `"${name}"`)
    .join(", ");
  await sql.unsafe(
    `insert into "${table}" (${list}) overriding system value
     select ${list} from jsonb_populate_recordset(null::"${table}", $1::text::jsonb)`,
    [`[${rows.join(",")}]`],
  );
}

async function refuseFilled(sql: Sql, migrations: readonly string[]): Promise<void> {
  const tables = await sql<{ name: string }[]>`
    select relname::text as name from pg_class
    where relkind in ('r', 'p') and relnamespace = current_schema()::regnamespace`;
  const remedy = "A dump goes into an empty one: name another in config.yaml, or move this one away.";
  for (const { name } of tables) {
    const [row] = await sql.unsafe<{ name?: string }[]>(`select * from "${name}" limit 1`);
    if (row && name !== "migrations") throw new UserError(`The database is not empty (${name} has rows). ${remedy}`);
  }
  if (!tables.some(({ name }) => name === "migrations")) return;
  const applied = await sql<{ name: string }[]>`select name from migrations`;
  const beyond = applied.filter(({ name }) => !migrations.includes(name));
  if (beyond.length > 0) throw new UserError(`The database has a schema already. ${remedy}`);
}

async function readThrough(file: string) {
  let header: z.infer<typeof headerSchema> | undefined;
  let end: DumpEnd | undefined;
  let rows = 0;
  try {
    for await (const line of linesOf(file)) {
      const { name, json } = split(line);
      if (!header) header = headerSchema.parse(JSON.parse(line));
      else if (json === undefined || (name !== "" && !header.tables.includes(name))) throw new Error("a strange line");
      else if (name === "") end = endSchema.parse(JSON.parse(json));
      else rows += 1;
    }
  } catch (error) {
    const words =
      error instanceof z.ZodError || error instanceof SyntaxError ? "no dump of Clevernet" : messageOf(error);
    throw new UserError(
      `${file} cannot be restored: ${words}. Name a file that \`clevernet dump\` or the bridge wrote.`,
    );
  }
  if (!header || !end || end.rows !== rows) {
    throw new UserError(`${file} cannot be restored: it is cut off. Take another dump.`);
  }
  return { header, end };
}

const split = (line: string): { readonly name: string; readonly json: string | undefined } => {
  const tab = line.indexOf("\t");
  return { name: line.slice(0, tab), json: tab < 0 ? undefined : line.slice(tab + 1) };
};

/** Not by node:readline, which also ends lines at U+2028, and JSON may hold that. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const source = createReadStream(file);
  const text = createGunzip().setEncoding("utf8");
  source.on("error", (error) => text.destroy(error));
  let rest = "";
  for await (const chunk of source.pipe(text) as AsyncIterable<string>) {
    const lines = chunk.split("\n");
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
