import { access, constants, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Database, openDatabase } from "../../adapters/database/connection.ts";
import { type Condition, conditionOf } from "../../adapters/database/health.ts";
import { lockHolder } from "../../adapters/database/lock.ts";
import { migrationFiles, saysUnknown } from "../../adapters/database/migrate.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { checkAgents } from "./check-agents.ts";
import { checkDevices } from "./check-devices.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

const oldestServer = 16;
const oldestVector = [0, 8] as const;

/** Checks that the database is there and fits this program, and looks at the agents in it. */
export async function* checkDatabase(setting: CheckSetting): AsyncGenerator<Finding> {
  const { running, config } = setting;
  if (running) return yield* look(running, setting);
  if ("dir" in config.database) {
    const early = await lookAtFolder(config.database.dir);
    if (early) return yield early;
  }
  let database: Database;
  try {
    database = await openDatabase(config.database);
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    yield failed("database", error.message);
    return;
  }
  try {
    yield* look(database, setting);
  } finally {
    await database.close();
  }
}

/** Looks at a folder without opening it: opening would make a database in it. */
const lookAtFolder = async (dir: string): Promise<Finding | undefined> => {
  const holder = await lockHolder(dir);
  if (holder !== undefined) {
    return ok(
      "database",
      `${dir} is in use by process ${holder}, the running bridge: !check in a control room looks into it.`,
    );
  }
  if (await stat(join(dir, "postgres")).catch(() => undefined)) return undefined;
  const folder = await nearestFolder(dir);
  try {
    await access(folder, constants.W_OK | constants.X_OK);
    return ok("database", `the first start makes it in ${dir}.`);
  } catch (error) {
    return failed(
      "database",
      `${dir} cannot be made: ${messageOf(error)}.`,
      `Make the folder, and give it to the user that runs Clevernet: chown USER ${dir}`,
    );
  }
};

/** The path itself, or what is there of it. */
const nearestFolder = async (path: string): Promise<string> => {
  const found = await stat(path).catch(() => undefined);
  return found || path === dirname(path)
    ? found && !found.isDirectory()
      ? join(path, ".")
      : path
    : nearestFolder(dirname(path));
};

async function* look(database: Database, setting: CheckSetting): AsyncGenerator<Finding> {
  const condition = await conditionOf(database);
  const server = Math.floor(condition.serverVersion / 10_000);
  const { location } = database;
  if (server < oldestServer) {
    yield failed("database", `this is PostgreSQL ${server}.`, `Clevernet needs PostgreSQL ${oldestServer} or newer.`);
    return;
  }
  yield ok("database", `${"dir" in location ? location.dir : "it"} answers (PostgreSQL ${server}).`);
  if (condition.unknown.length > 0) {
    yield failed("migrations", saysUnknown(condition.unknown, await migrationFiles()));
    return;
  }
  if (condition.pending.length > 0) {
    yield ok("migrations", `the next start applies ${condition.pending.join(", ")}.`);
  } else yield ok("migrations", "the schema is up to date.");
  if ("url" in location) yield vectorOf(condition, server);
  if (condition.pending.length > 0) return;
  yield* checkAgents(database, setting);
  yield* checkDevices(database, setting);
}

const vectorOf = ({ vector }: Condition, server: number): Finding => {
  const [major = 0, minor = 0] = (vector?.version ?? "").split(".").map(Number);
  const isRecent = major > oldestVector[0] || (major === oldestVector[0] && minor >= oldestVector[1]);
  if (vector && isRecent) return ok("pgvector", `${vector.version} is ${vector.isInstalled ? "installed" : "there"}.`);
  const says = vector ? `${vector.version} is too old for memory.` : "the server does not have it; memory needs it.";
  return warning(
    "pgvector",
    says,
    `Install pgvector ${oldestVector.join(".")} or newer on the server (Debian: postgresql-${server}-pgvector).`,
  );
};
