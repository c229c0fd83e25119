import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../../src/adapters/database/connection.ts";
import { dump } from "../../../src/adapters/database/dump.ts";
import { migrate } from "../../../src/adapters/database/migrate.ts";
import { restore } from "../../../src/adapters/database/restore.ts";
import { onEachDatabase } from "../../support/database.ts";
import { createSharedDatabase } from "../../support/shared-postgres.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-dump-"));
});
afterAll(() => rm(dir, { recursive: true }));

const contentOf = async (file: string): Promise<string[]> =>
  gunzipSync(await readFile(file))
    .toString()
    .split("\n")
    .toSorted();

/** Rows of every kind of column, and more than fit into one piece. */
async function fill({ sql }: Database): Promise<void> {
  await sql`
    insert into agents (name, user_id, owner, suffix, device_id)
    select 'a' || i, '@a' || i, '@o', 'abcd', 'D' from generate_series(1, 1200) i`;
  await sql`insert into conversations (agent, room_id, seen_position) values ('a1', '!r', 0.1 + 0.2)`;
  const [turn] = await sql<{ id: number }[]>`
    insert into turns (agent, room_id, number, reason, runner, requesters)
    values ('a1', '!r', 1, 'new event', 'me', ${["@ä", 'quote"', "back\\slash"]}) returning id`;
  await sql`
    insert into wakes (key, agent, room_id, reason, turn_id)
    select 'k' || i, 'a1', '!r', 'new event', ${turn?.id ?? 0} from generate_series(1, 30) i`;
  for (const [index, text] of texts.entries()) {
    await sql`
      insert into events (event_id, room_id, type, sender, sent_at, content, position, source)
      values (${`$${index}`}, '!r', 'm.room.message', '@o', now(), ${sql.json({ body: text })}, 9007199254740993.5, 'push')`;
  }
  await sql`insert into quarantine (digest, reason, raw) values ('d', 'r', ${Buffer.from([0, 255, 10, 9])})`;
}

const texts = ["a\u2028b\u2029c\td\ne\r\nf", "\\u0000 \\n", "9".repeat(40), "{}", ""];

onEachDatabase((database, kind) => {
  const file = () => join(dir, `${kind}.dump`);

  it("is written whole, and is for its owner alone", async () => {
    await fill(database());
    const { rows } = await dump(database(), file());
    expect(rows).toBeGreaterThan(1200 + 1 + 1 + 30 + texts.length);
    expect((await readdir(dir)).filter((name) => name.startsWith(kind))).toEqual([`${kind}.dump`]);
  });

  it.each(["embedded", "postgres"] as const)("is restored into an empty %s database, row for row", async (target) => {
    const place = await createSharedDatabase();
    const location = target === "postgres" ? { url: place.url } : { dir: join(dir, `${kind}-to-${target}`) };
    const other = await openDatabase(location);
    try {
      await restore(other, file());
      const again = join(dir, `${kind}-${target}-again.dump`);
      await dump(other, again);
      expect(await contentOf(again)).toEqual(await contentOf(file()));
      expect(await migrate(other)).toEqual([]);
      await other.sql`insert into wakes (key, agent, room_id, reason) values ('new', 'a1', '!r', 'new event')`;
      await other.sql`
        insert into events (event_id, room_id, type, sender, sent_at, content, position, source)
        values ('$new', '!r', 't', '@o', now(), '{}', 1, 'push')`;
      await expect(restore(other, file())).rejects.toThrow("The database is not empty (");
    } finally {
      await other.close();
      await place.drop();
    }
  });

  it("leaves nothing of an attempt that fails", async () => {
    await expect(dump(database(), join(dir, `${kind}.dump`, "x"))).rejects.toThrow();
    expect((await readdir(dir)).filter((name) => name.endsWith(".part"))).toEqual([]);
  });
});

describe("a dump that cannot be restored changes nothing", () => {
  let target: Database;
  let drop: () => Promise<void>;
  beforeAll(async () => {
    const place = await createSharedDatabase();
    drop = place.drop;
    target = await openDatabase(place);
  });
  afterAll(async () => {
    await target.close();
    await drop();
  });

  const untouched = async () =>
    expect(await target.sql`select to_regclass('migrations') is null as untouched`).toEqual([{ untouched: true }]);
  const dumped = async () => gunzipSync(await readFile(join(dir, "embedded.dump"))).toString();

  it("since it is cut off", async () => {
    const file = join(dir, "cut.dump");
    await writeFile(file, gzipSync((await dumped()).split("\n").slice(0, 100).join("\n")));
    await expect(restore(target, file)).rejects.toThrow("it is cut off");
    await writeFile(file, await readFile(join(dir, "embedded.dump")));
    await truncate(file, 2_000);
    await expect(restore(target, file)).rejects.toThrow("cannot be restored: unexpected end of file");
    await untouched();
  });

  it("since it is something else", async () => {
    const file = join(dir, "other.dump");
    await writeFile(file, gzipSync('{"hello":1}\n'));
    await expect(restore(target, file)).rejects.toThrow("no dump of Clevernet");
    await writeFile(file, "hello");
    await expect(restore(target, file)).rejects.toThrow("cannot be restored: incorrect header check");
    await expect(restore(target, join(dir, "nowhere"))).rejects.toThrow("ENOENT");
    await untouched();
  });

  it("since another program wrote it", async () => {
    const file = join(dir, "newer.dump");
    await writeFile(file, gzipSync((await dumped()).replace(/"0001-[^"]*"/, '$&,"9999-x.sql"')));
    await expect(restore(target, file)).rejects.toThrow("by a newer Clevernet (9999-x.sql)");
    await writeFile(file, gzipSync((await dumped()).replace(/"0001-[^"]*"/, '"0001-inbox.sql"')));
    await expect(restore(target, file)).rejects.toThrow(
      "by another Clevernet, perhaps an older one (it has 0001-inbox.sql where this one has 0001-transport.sql)",
    );
    await untouched();
  });

  it("and one that fails half way leaves a database on which nothing starts", async () => {
    const file = join(dir, "wrong.dump");
    await writeFile(file, gzipSync((await dumped()).replace('"key": "k7"', '"key": "k8"')));
    await expect(restore(target, file)).rejects.toThrow("duplicate key");
    await expect(migrate(target)).rejects.toThrow("a restore into it was not finished");
  });
});
