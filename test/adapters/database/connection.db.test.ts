import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../../src/adapters/database/connection.ts";
import { lockDirectory } from "../../../src/adapters/database/lock.ts";
import { migrate } from "../../../src/adapters/database/migrate.ts";
import { UserError } from "../../../src/base/lib/errors.ts";
import { onEachDatabase } from "../../support/database.ts";
import { PostgresServer, type TestDatabase } from "../../support/postgres.ts";
import { createSharedDatabase, postgresMissing } from "../../support/shared-postgres.ts";
import { startTcpProxy, type TcpProxy } from "../../support/tcp-proxy.ts";

const migrations = (await readdir(new URL("../../../migrations/", import.meta.url))).sort();

onEachDatabase((database, kind) => {
  it("a plan that was made while its table was almost empty reads it by an index", async () => {
    const plan = await database().sql.unsafe(
      "explain (generic_plan) select 1 from events where replaces = $1 or redacts = $2",
    );
    expect(JSON.stringify(plan)).not.toContain("Seq Scan");
  });

  describe("parameters", () => {
    const echo = async (text: string): Promise<unknown> => {
      const [row] = await database().sql`select ${text}::text as text`;
      return row?.text;
    };
    it.each([
      ["CRLF", "one\r\ntwo\rthree\n"],
      ["nothing", ""],
      ["quotes and backslashes", String.raw`it's "\n" $1 \\ ;--`],
      ["text beyond the basic plane", "𝄞 👩‍👩‍👧 ẞ é \u{10FFFD}"],
    ])("arrive as they are: %s", async (_what, text) => {
      expect(await echo(text)).toBe(text);
      expect(await database().sql`select ${database().sql.json({ text })}::jsonb as json`).toEqual([
        { json: { text } },
      ]);
    });

    it("arrive as they are: ten million characters, and many large ones side by side", async () => {
      const large = "ä".repeat(5_000_000) + "\r\n".repeat(2_500_000);
      expect((await echo(large)) === large).toBe(true);
      const texts = Array.from({ length: 20 }, (_, i) => `${i}`.repeat(100_000));
      const echoes = await Promise.all(texts.map(echo));
      expect(echoes.every((text, i) => text === texts[i])).toBe(true);
    });

    it("arrive as they are: lists of text, whatever is in it", async () => {
      const lists = fc.array(
        fc.string({ unit: "binary" }).filter((text) => text.isWellFormed() && !text.includes("\0")),
      );
      const check = async (given: string[]) => {
        const list = [...given, 'a"b', "\\", "NULL", "null", "", " ", "{}", "a,b", "\n"];
        const [row] = await database()
          .sql`select ${list}::text[] as list, ${[]}::text[] as none, cardinality(${list}::text[]) as count`;
        expect(row).toEqual({ list, none: [], count: list.length });
      };
      await fc.assert(fc.asyncProperty(lists, check), { numRuns: 200 });
    });

    it("arrive as they are: bytes", async () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      const [row] = await database().sql`select ${bytes}::bytea as bytes`;
      expect(Buffer.compare(row?.bytes as Buffer, bytes)).toBe(0);
    });
  });

  it("a statement that is wrong fails at once, and the next one works", async () => {
    let attempts = 0;
    const wrong = database().run((sql) => {
      attempts += 1;
      return sql`select from nowhere`;
    });
    await expect(wrong).rejects.toThrow("nowhere");
    expect(attempts).toBe(1);
    expect(await database().sql`select 1 as one`).toEqual([{ one: 1 }]);
  });

  it("counts are numbers", async () => {
    expect(await database().sql`select count(*) as count from events`).toEqual([{ count: 0 }]);
  });

  it("migrations are applied once, in the order of their names", async () => {
    const rows = await database().sql<{ name: string }[]>`select name from migrations order by applied_at, name`;
    expect(rows.map(({ name }) => name)).toEqual(migrations);
    expect(await migrate(database())).toEqual([]);
  });

  it(`has the same tables after a failed statement in the middle of a migration (${kind})`, async () => {
    const { sql } = database();
    await expect(sql.unsafe("create table half (n integer); select from nowhere;").simple()).rejects.toThrow("nowhere");
    expect(await sql`select to_regclass('half') as half`).toEqual([{ half: null }]);
  });
});

describe.skipIf(postgresMissing)("PostgreSQL", () => {
  let own: TestDatabase;
  let proxy: TcpProxy;
  let database: Database;
  beforeEach(async () => {
    own = await createSharedDatabase();
    proxy = await startTcpProxy(own.url);
    database = await openDatabase({ url: proxy.url });
  });
  afterEach(async () => {
    await database.close();
    await proxy.stop();
    await own.drop();
  });
  const ask = () => database.run((sql) => sql`select 1 as one`);

  it("repeats a statement whose connection was cut before the answer", async () => {
    await database.sql`create table kept (key text primary key, tries integer not null)`;
    proxy.hold("answers");
    const stored = database.run(
      (sql) =>
        sql`insert into kept values ('a', 1) on conflict (key) do update set tries = kept.tries + 1 returning tries`,
    );
    const other = await openDatabase({ url: own.url });
    await expect.poll(() => other.sql`select tries from kept`, { timeout: 10_000 }).toEqual([{ tries: 1 }]);
    await other.close();
    proxy.cut();
    proxy.release();
    expect(await stored).toEqual([{ tries: 2 }]);
  });

  it("waits for a server that refuses connections for a while", async () => {
    await ask();
    await proxy.refuse();
    const answer = ask();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await proxy.accept();
    expect(await answer).toEqual([{ one: 1 }]);
  });

  it("repeats every statement of many that were under way", async () => {
    const answers = Promise.all(
      Array.from({ length: 30 }, (_, i) => database.run((sql) => sql`select ${i}::int as i, pg_sleep(0.1)::text`)),
    );
    await new Promise((resolve) => setTimeout(resolve, 150));
    proxy.cut();
    expect((await answers).map(([row]) => row?.i)).toEqual(Array.from({ length: 30 }, (_, i) => i));
  });

  it("tries nothing again that was under way when it was closed", async () => {
    let tries = 0;
    const answer = database.run((sql) => {
      tries += 1;
      return sql`select pg_sleep(60)`;
    });
    answer.catch(() => {});
    await database.close();
    await expect(answer).rejects.toThrow("CONNECTION_");
    expect(tries).toBe(1);
  });

  it("says where it does not answer, without the password", async () => {
    const attempt = openDatabase({ url: "postgres://me:secret@127.0.0.1:1/none" });
    const error = await attempt.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toContain("127.0.0.1:1/none");
    expect(String(error)).not.toContain("secret");
  });

  it("migrates once when several processes start at the same time", async () => {
    const others = await Promise.all([1, 2, 3].map(() => openDatabase({ url: own.url })));
    try {
      const applied = await Promise.all(others.map((other) => migrate(other)));
      expect(applied.flat().sort()).toEqual(migrations);
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

  it.each([
    ["goes", ["turn", "__pgboss__send-it"]],
    ["stays where others use it, too", ["turn", "mail"]],
  ])("the schema of the job queue that was used before %s", async (_, queues) => {
    const place = await createSharedDatabase();
    const old = await openDatabase({ url: place.url });
    try {
      await migrate(old, migrations.slice(0, migrations.indexOf("0016-no-job-queue.sql")));
      await old.sql.unsafe("create schema pgboss; create table pgboss.queue (name text)").simple();
      await old.sql`insert into pgboss.queue select unnest(${queues}::text[])`;
      await migrate(old);
      const left = await old.sql`select 1 from pg_namespace where nspname = 'pgboss'`;
      expect(left).toHaveLength(queues.includes("mail") ? 1 : 0);
    } finally {
      await old.close();
      await place.drop();
    }
  });

  it("gives what was made in rooms with closed history its place there, and counts rooms as open until it is told", async () => {
    const place = await createSharedDatabase();
    const old = await openDatabase({ url: place.url });
    try {
      await migrate(old, migrations.slice(0, migrations.indexOf("0025-closed-rooms.sql")));
      await old.sql
        .unsafe(`
        insert into agents (name, user_id, owner, suffix, device_id) values ('a', '@agent_a:x', '@o:x', 's', 'd');
        insert into members (room_id, user_id, membership, kind, position, joined_position) values
          ('!r:x', '@agent_a:x', 'join', 'agent', 0, 0), ('!r:x', '@early:x', 'join', 'human', 0, 0),
          ('!r:x', '@late:x', 'join', 'human', 2, 2);
        insert into room_state (room_id, type, content, sender, position)
          values ('!r:x', 'm.room.history_visibility', '{"history_visibility": "joined"}', '@early:x', 1);
        insert into events (seq, event_id, room_id, type, sender, sent_at, content, position, source, received_at) select
          n, '$' || n, '!r:x', 'm.room.message', '@early:x', now(), '{}', n, 'push', now() - (10 - n) * interval '1 hour'
          from generate_series(1, 4) n;
        insert into todos (agent, room_id, number, name, key, created_at) values
          ('a', '!r:x', 1, 'old', 'k1', now() - interval '8.5 hours'), ('a', '!r:x', 2, 'new', 'k2', now())`)
        .simple();
      await migrate(old);
      const places = await old.sql`select number, place from todos order by number`;
      expect(places.map((row) => row.place)).toEqual([1, 4]);
      const unseen = await old.sql`
        select is_unseen(array['@early:x'], '!r:x', 1) as early, is_unseen(audience_of('!r:x', '@o:x'), '!r:x', 1) as both`;
      expect([...unseen]).toEqual([{ early: false, both: true }]);
      const [row] = await old.sql`select audience_of('!r:x', '@o:x') as audience`;
      expect(row?.audience).toEqual(["*!r:x", "@early:x", "@late:x"]);
    } finally {
      await old.close();
      await place.drop();
    }
  });

  it("keeps knowledge from before it could be searched, with its walls and the files that it is of", async () => {
    const place = await createSharedDatabase();
    const old = await openDatabase({ url: place.url });
    try {
      await migrate(old, migrations.slice(0, migrations.indexOf("0040-knowledge.sql")));
      await old.sql
        .unsafe(`
        insert into agents (name, user_id, owner, suffix, device_id) values ('a', '@agent_a:x', '@o:x', 's', 'd');
        insert into knowledge (agent, source, text, wall) values
          ('a', 'fileChunk:rooms:/!r:x/a [1].md[12]', 'one', '!r:x'), ('a', 'fileSummary:system:/guides/b.md', 'two', null),
          ('a', 'user', 'three', '')`)
        .simple();
      await migrate(old);
      const rows = await old.sql`select text, sources, share, path, title from knowledge order by id`;
      expect([...rows]).toEqual([
        { text: "one", sources: ["!r:x"], share: "rooms", path: "/!r:x/a [1].md", title: "a [1].md" },
        { text: "two", sources: [], share: "system", path: "/guides/b.md", title: "b.md" },
        { text: "three", sources: [""], share: null, path: null, title: "" },
      ]);
      expect(await old.sql`select 1 from knowledge_to_embed`).toHaveLength(3);
    } finally {
      await old.close();
      await place.drop();
    }
  });

  it.each(["restart", "crash"] as const)("goes on after a %s of the server", async (end) => {
    const server = await PostgresServer.create();
    const restarted = await openDatabase({ url: server.url });
    try {
      await restarted.sql`create table kept (n integer primary key)`;
      const write = (n: number) =>
        restarted.run((sql) => sql`insert into kept select ${n} from pg_sleep(0.05) on conflict do nothing`);
      const writing = Promise.all(Array.from({ length: 40 }, (_, n) => write(n)));
      await (end === "restart" ? server.stop() : server.kill());
      await server.start();
      await writing;
      expect(await restarted.sql`select count(*) as count from kept`).toEqual([{ count: 40 }]);
    } finally {
      await restarted.close();
      await server.dispose();
    }
  });
});

describe("the folder of the embedded database", () => {
  let dir: string;
  const children: ChildProcessByStdio<Writable, Readable, null>[] = [];
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "clevernet-lock-"));
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await kill(child);
    await rm(dir, { recursive: true, force: true });
  });
  const start = (script: string, ...args: string[]) => {
    const file = new URL(`../../support/${script}`, import.meta.url).pathname;
    const child = spawn(process.execPath, [file, ...args], { stdio: ["pipe", "pipe", "inherit"] });
    children.push(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const line = async () => String((await lines.next()).value);
    return { child, line };
  };
  const kill = async (child: ChildProcessByStdio<Writable, Readable, null>) => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  const pidFile = () => join(dir, "clevernet.pid");
  it("is refused to a second process, which is told the first one's id", async () => {
    const { child, line } = start("embedded-writer.ts", dir);
    await line();
    const lock = await readFile(pidFile(), "utf8");
    const error = await openDatabase({ dir }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toContain(`process ${child.pid}`);
    expect(await readFile(pidFile(), "utf8")).toBe(lock);
  });

  it("keeps every acknowledged row of a process that is killed, and opens for the next", async () => {
    let acknowledged = 0;
    for (const rows of [20, 150]) {
      const { child, line } = start("embedded-writer.ts", dir);
      for (let i = 0; i < rows; i++) acknowledged = Number(await line());
      await kill(child);
      const database = await openDatabase({ dir });
      const found = await database.sql<{ n: number }[]>`select n from written where n <= ${acknowledged} order by n`;
      expect(found.map(({ n }) => n)).toEqual(Array.from({ length: acknowledged }, (_, i) => i + 1));
      await database.close();
    }
  }, 60_000);

  it("is not called damaged where it is only closed to us", async () => {
    await mkdir(join(dir, "postgres"));
    // Whoever runs this may read everything; nobody can read this.
    await symlink("PG_VERSION", join(dir, "postgres", "PG_VERSION"));
    const error = String(await openDatabase({ dir }).catch((thrown: unknown) => thrown));
    expect(error).toMatch(/^UserError: database.dir: .*postgres cannot be opened .*chown -R USER/);
    expect(error).not.toContain("damaged");
    expect(await readdir(dir)).toEqual(["postgres"]);
  });

  it("is free again when it was closed", async () => {
    const unlock = await lockDirectory(dir);
    await expect(lockDirectory(dir)).rejects.toThrow(UserError);
    await unlock();
    expect(await readdir(dir)).toEqual([]);
    await (await lockDirectory(dir))();
  });

  it.each([
    ["of a process that is gone", "999999999 1"],
    ["of another process that had our id", `${process.pid} 1`],
    ["that is empty", ""],
    ["that is no lock", "something else"],
  ])("is taken over from a lock %s", async (_whose, content) => {
    await writeFile(pidFile(), content);
    const unlock = await lockDirectory(dir);
    expect(await readFile(pidFile(), "utf8")).toMatch(new RegExp(`^${process.pid} \\d+$`));
    await unlock();
  });

  it("goes to exactly one of four processes that want it at the same time, new or left behind", async () => {
    const lockers = [1, 2, 3, 4].map(() => start("directory-locker.ts"));
    const results: string[][] = [];
    for (let round = 0; round < 100; round++) {
      const folder = join(dir, `${round}`);
      await mkdir(folder);
      if (round % 2 === 0) await writeFile(join(folder, "clevernet.pid"), "999999999 1");
      for (const { child } of lockers) child.stdin.write(`${folder}\n`);
      results.push((await Promise.all(lockers.map((locker) => locker.line()))).sort());
    }
    expect(new Set(results.map((result) => result.join(" ")))).toEqual(new Set(["false false false true"]));
  });
});
