import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe } from "vitest";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { copyEmbedded } from "./shared-embedded.ts";
import { createSharedDatabase, postgresMissing } from "./shared-postgres.ts";

export type DatabaseKind = "embedded" | "postgres";

interface OwnDatabase {
  readonly database: Database;
  /** Closes and removes it. */
  dispose(): Promise<void>;
}

/** A database with the whole schema and no rows. */
async function testDatabase(kind: DatabaseKind): Promise<OwnDatabase> {
  const place = await (kind === "postgres" ? createSharedDatabase() : createFolder());
  const database = await openDatabase("url" in place ? { url: place.url } : { dir: place.dir });
  await migrate(database);
  return {
    database,
    async dispose() {
      await database.close();
      await place.drop();
    },
  };
}

/**
 * Defines the tests twice: on the embedded database, and on PostgreSQL, where they are skipped if there is none. Each
 * half has one database for all of its tests.
 */
export function onEachDatabase(tests: (database: () => Database, kind: DatabaseKind) => void): void {
  for (const kind of ["embedded", "postgres"] as const) {
    const missing = kind === "postgres" ? postgresMissing : undefined;
    describe.skipIf(missing)(`on the ${kind} database${missing ? ` (skipped: ${missing})` : ""}`, () => {
      let own: OwnDatabase | undefined;
      beforeAll(async () => {
        own = await testDatabase(kind);
      });
      afterAll(() => own?.dispose());
      tests(() => {
        if (!own) throw new Error("the database is there only while tests run");
        return own.database;
      }, kind);
    });
  }
}

async function createFolder() {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-data-"));
  await copyEmbedded(dir);
  return { dir, drop: () => rm(dir, { recursive: true }) };
}
