import { inject } from "vitest";
import type { SharedPostgres } from "./global-postgres.ts";
import { createDatabase, type TestDatabase } from "./postgres.ts";

const shared: SharedPostgres | undefined = inject("postgres");

/** Why there is no PostgreSQL in this run; undefined where there is one. For `describe.skipIf` and its title. */
export const postgresMissing: string | undefined = shared && "missing" in shared ? shared.missing : undefined;

/** An empty database on the PostgreSQL that this run shares. */
export async function createSharedDatabase(): Promise<TestDatabase> {
  if (shared === undefined)
    throw new Error("PostgreSQL runs for the projects `database` and `e2e` only: see test/vitest.config.ts");
  if ("missing" in shared) throw new Error(`there is no PostgreSQL: ${shared.missing}`);
  return createDatabase(shared.url);
}
