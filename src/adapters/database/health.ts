import type { Database } from "./connection.ts";
import { migrationFiles } from "./migrate.ts";

/** Condition of a database before anything is changed in it. */
export interface Condition {
  /** Such as 160004. */
  readonly serverVersion: number;
  /** Of pgvector, where it is installed in this database; `available` where it only could be. */
  readonly vector: { readonly version: string; readonly isInstalled: boolean } | undefined;
  /** Migrations of this program that the database lacks; all of them in a new one. */
  readonly pending: readonly string[];
  /** Migrations that this program does not know: those of a newer one, or of a restore that was not finished. */
  readonly unknown: readonly string[];
}

export async function conditionOf({ sql }: Database): Promise<Condition> {
  const [server] = await sql<{ version: number; isKnown: boolean }[]>`
    select current_setting('server_version_num')::int as version, to_regclass('migrations') is not null as "isKnown"`;
  const [vector] = await sql<{ version: string; isInstalled: boolean }[]>`
    select coalesce(installed_version, default_version) as version, installed_version is not null as "isInstalled"
    from pg_available_extensions where name = 'vector'`;
  const applied = server?.isKnown ? await sql<{ name: string }[]>`select name from migrations order by name` : [];
  const names = applied.map(({ name }) => name);
  const files = await migrationFiles();
  return {
    serverVersion: server?.version ?? 0,
    vector,
    pending: files.filter((file) => !names.includes(file)),
    unknown: names.filter((name) => !files.includes(name)),
  };
}
