import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** A folder with an embedded database that has the whole schema and no rows: to copy, since making one takes seconds. */
    embeddedTemplate: string;
  }
}

/** Every project has its own setup, but the template is one for the whole run. */
const run = globalThis as typeof globalThis & { clevernetTemplate?: Promise<string> };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  run.clevernetTemplate ??= makeTemplate();
  const dir = await run.clevernetTemplate;
  project.provide("embeddedTemplate", dir);
  return () => rm(dir, { recursive: true, force: true });
}

async function makeTemplate(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-template-"));
  const database = await openDatabase({ dir });
  await migrate(database);
  await database.close();
  return dir;
}
