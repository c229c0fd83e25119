import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { type Database, openDatabase } from "./connection.ts";
import { dump } from "./dump.ts";
import { dumpFile, dumpTime, forgetDumps, newestDump } from "./dump-files.ts";

const minute = 60_000;
const passEveryMs = 5 * minute;
/** In passes. */
const vacuumEvery = 12;
const dumpEveryMs = 24 * 60 * minute;
const dumpsKept = 3;

/**
 * Does for the embedded database what a PostgreSQL server does by itself: a checkpoint every 5 minutes (its log would
 * grow for ever, and starting after a crash take as long), VACUUM every hour; and a dump every day, into `dumps` beside
 * the data, of which the last three are kept. Does nothing on a server.
 */
export class Care {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #stopped = new AbortController();
  #work: Promise<void> = Promise.resolve();

  constructor(database: Database, clock: Clock, log: Log) {
    this.#database = database;
    this.#clock = clock;
    this.#log = log;
  }

  start(): void {
    if ("dir" in this.#database.location) this.#work = this.#repeat();
  }

  /** A dump that is under way is given up. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#work;
  }

  async #repeat(): Promise<void> {
    for (let pass = 1; ; pass++) {
      try {
        await this.#clock.sleep(passEveryMs, this.#stopped.signal);
      } catch {
        return;
      }
      try {
        await this.#pass(pass % vacuumEvery === 0);
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#log.error({ err: error }, `care of the embedded database: ${messageOf(error)}`);
      }
    }
  }

  async #pass(vacuums: boolean): Promise<void> {
    await this.#database.run((sql) => sql`checkpoint`);
    if (vacuums) await this.#database.run((sql) => sql`vacuum analyze`);
    const { location } = this.#database;
    if (!("dir" in location)) return;
    const last = newestDump(location.dir);
    if (last && this.#clock.now().getTime() - dumpTime(last).getTime() < dumpEveryMs) return;
    const file = dumpFile(location.dir, this.#clock.now());
    const { rows } = await dumpCopy(this.#database, location.dir, file, this.#stopped.signal);
    await forgetDumps(location.dir, dumpsKept);
    this.#log.info({ file, rows }, "the database was dumped");
  }
}

/** The dump is read from a copy, by a second database, so that nobody waits for more than the copy. */
async function dumpCopy(database: Database, dir: string, file: string, signal: AbortSignal) {
  const copied = join(dir, "dumping");
  await rm(copied, { recursive: true, force: true });
  try {
    await database.copyTo?.(copied);
    const copy = await openDatabase({ dir: copied });
    try {
      return await dump(copy, file, signal);
    } finally {
      await copy.close();
    }
  } finally {
    await rm(copied, { recursive: true, force: true });
  }
}
