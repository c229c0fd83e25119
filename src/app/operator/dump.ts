import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { openDatabase } from "../../adapters/database/connection.ts";
import { dump } from "../../adapters/database/dump.ts";
import { newestDump } from "../../adapters/database/dump-files.ts";
import { lockHolder } from "../../adapters/database/lock.ts";
import { restore } from "../../adapters/database/restore.ts";
import { UserError } from "../../base/lib/errors.ts";
import { type Config, loadConfig } from "../config/config.ts";

/** Writes the configured database into a file that is not there yet. @returns what to tell the operator */
export async function dumpTo(configFile: string, file: string): Promise<string> {
  const path = resolve(file);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new UserError(`${path} exists and is not overwritten: name another file, or move it away.`);
  const { database: location } = await loadConfig(configFile);
  await refuseRunning(location, "dumped");
  const database = await openDatabase(location);
  try {
    const { rows } = await dump(database, path);
    return `${path} holds everything (${rows} rows). It goes into an embedded database as well as into PostgreSQL:
  npm run clevernet -- restore --config CONFIG ${path}`;
  } finally {
    await database.close();
  }
}

/** Puts a dump into the configured database, which must be empty. @returns what to tell the operator */
export async function restoreFrom(configFile: string, file: string): Promise<string> {
  const path = resolve(file);
  const { database: location } = await loadConfig(configFile);
  await refuseRunning(location, "restored");
  const database = await openDatabase(location);
  try {
    const { rows } = await restore(database, path);
    return `${rows} rows were restored from ${path}. Start the bridge: what came since then it reads from the homeserver.`;
  } finally {
    await database.close();
  }
}

const refuseRunning = async (location: Config["database"], what: string): Promise<void> => {
  const holder = "dir" in location ? await lockHolder(location.dir) : undefined;
  if (holder === undefined || !("dir" in location)) return;
  const newest = newestDump(location.dir);
  const instead = what === "dumped" && newest ? ` Or take its own last dump: ${newest}` : "";
  throw new UserError(
    `${location.dir} is in use by process ${holder}, and cannot be ${what}. Stop it first.${instead}`,
  );
};
