import { mkdir, mkdtemp, readdir, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../../src/adapters/database/connection.ts";
import { newestDump } from "../../../src/adapters/database/dump-files.ts";
import { Care } from "../../../src/adapters/database/maintenance.ts";
import { migrate } from "../../../src/adapters/database/migrate.ts";
import { restore } from "../../../src/adapters/database/restore.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { eventually } from "../../support/poll.ts";

const minutes = 60_000;
const day = 24 * 60 * minutes;

describe("care of the embedded database", () => {
  let dir: string;
  let database: Database;
  const clock = fixedClock({ instantBelow: 0 });
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), "clevernet-care-"));
    database = await openDatabase({ dir });
    await migrate(database);
  });
  afterAll(async () => {
    await database.close();
    await rm(dir, { recursive: true });
  });

  const dumps = () => readdir(join(dir, "dumps")).catch(() => []);

  /** Lets time pass, until everything is done that was due. */
  const pass = async (ms: number) => {
    const slept = clock.sleeps.length;
    clock.advance(ms);
    await eventually(() => clock.sleeps.length > slept, { within: 20_000, what: "the pass to end" });
  };

  it("dumps it once a day while others write, and keeps three", async () => {
    const earlier = [29, 30, 31].map((date) => `2025-12-${date}T120000Z.dump`);
    await mkdir(join(dir, "dumps"));
    for (const name of [...earlier, "2025-12-31T235959Z.dump.part"]) await writeFile(join(dir, "dumps", name), "");
    const care = new Care(database, clock, silentLog);
    care.start();
    let isWriting = true;
    const writer = (async () => {
      for (let n = 1; isWriting; n++) {
        await database.run(
          (sql) => sql`
          with agent as (
            insert into agents (name, user_id, owner, suffix, device_id)
            values (${`a${n}`}, ${`@a${n}`}, '@o', 'abcd', 'D') returning name
          )
          insert into conversations (agent, room_id) select name, '!r' from agent`,
        );
      }
    })();
    try {
      await pass(5 * minutes);
      await pass(day);
    } finally {
      isWriting = false;
      await writer;
    }
    await care.stop();
    expect(await dumps()).toEqual([...earlier.slice(2), "2026-01-01T120500Z.dump", "2026-01-02T120500Z.dump"]);
    expect((await readdir(dir)).toSorted()).toEqual(["clevernet.pid", "dumps", "postgres"]);
  });

  it("keeps its files, and the dumps, to the user that runs it", async () => {
    const modeOf = async (name: string) => (await stat(join(dir, name))).mode & 0o777;
    expect(await modeOf("postgres")).toBe(0o700);
    expect(await modeOf(`dumps/${(await dumps()).at(-1)}`)).toBe(0o600);
  });

  it("gives no more dumps before the day is over", async () => {
    const care = new Care(database, clock, silentLog);
    care.start();
    for (let passed = 0; passed < 12; passed++) await pass(5 * minutes);
    await care.stop();
    expect(await dumps()).toHaveLength(3);
  });

  it("tells the way back when the files are damaged, and it is one", async () => {
    const [before] = await database.sql<{ count: number }[]>`select count(*) from agents`;
    await database.close();
    const newest = newestDump(dir) ?? "";
    const control = join(dir, "postgres/global/pg_control");
    const version = join(dir, "postgres/PG_VERSION");
    const back = `Move it away: mv ${dir}/postgres ${dir}/postgres.damaged. Then restore the last dump: npm run clevernet -- restore ${newest}`;
    await truncate(control, 100);
    await expect(openDatabase({ dir })).rejects.toThrow(back);
    await rm(version);
    await expect(openDatabase({ dir })).rejects.toThrow(back);
    await rename(join(dir, "postgres"), join(dir, "postgres.damaged"));
    database = await openDatabase({ dir });
    await restore(database, newest);
    const [agents] = await database.sql<{ count: number }[]>`select count(*) from agents`;
    expect(agents?.count).toBeGreaterThan(0);
    expect(agents?.count).toBeLessThanOrEqual(before?.count ?? 0);
    // Each was written together with its agent: the dump is of one moment.
    expect(await database.sql`select count(*) from conversations`).toEqual([agents]);
  });
});
