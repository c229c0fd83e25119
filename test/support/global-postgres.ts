import type { TestProject } from "vitest/node";
import { PostgresServer } from "./postgres.ts";
import { postgresHindrance } from "./postgres-files.ts";

/** PostgreSQL server for the tests that need one, or the reason why there is none. */
export type SharedPostgres = { readonly url: string } | { readonly missing: string };

declare module "vitest" {
  interface ProvidedContext {
    postgres: SharedPostgres;
  }
}

/** Every project has its own setup, but the server is one for the whole run. */
const run = globalThis as typeof globalThis & { clevernetPostgres?: Promise<PostgresServer> };

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env.TEST_POSTGRES_URL;
  const missing = given ? undefined : await postgresHindrance();
  if (given || missing) {
    if (missing) project.vitest.logger.warn(`Tests on PostgreSQL are skipped: ${missing}.`);
    project.provide("postgres", given ? { url: given } : { missing: missing ?? "" });
    return undefined;
  }
  const log = (text: string): void => project.vitest.logger.log(text);
  run.clevernetPostgres ??= PostgresServer.create(log);
  const server = await run.clevernetPostgres;
  project.provide("postgres", { url: server.url });
  return async () => {
    if (run.clevernetPostgres === undefined) return;
    delete run.clevernetPostgres;
    await server.dispose();
  };
}
