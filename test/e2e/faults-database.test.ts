import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { count, push } from "../support/faults.ts";
import { obey } from "../support/obedient.ts";
import { askThrough, restartOften, talkThrough } from "../support/outages.ts";
import { PostgresServer, type TestDatabase } from "../support/postgres.ts";
import { type ModelRequest, newMessages } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("two processes on a PostgreSQL that fails", () => {
  let server: PostgresServer;
  let place: TestDatabase;
  let admin: Database;
  let stage: Stage;
  let ann: TestUser;
  let operator: TestUser;
  let rooms: string[];
  beforeAll(async () => {
    server = await PostgresServer.create();
    place = await server.createDatabase();
    admin = await openDatabase({ url: server.url });
    stage = await Stage.set({ database: "postgres", postgresUrl: place.url, processes: 2 });
    obey(stage.model).onEvery(answerEach);
    [ann, operator] = [await stage.user("ann"), await stage.user("admin")];
    for (const bridge of stage.bridges) await bridge.start();
    rooms = [await stage.directRoom(ann), await stage.directRoom(ann)];
  }, 240_000);
  afterAll(async () => {
    await stage.strike();
    await admin.close();
    await server.dispose();
  });

  it("a PostgreSQL that restarts every 5 to 10 s costs no answer, and no operation (half a minute; 5 minutes in npm run faults)", async () => {
    const room = await stage.directRoom(operator);
    await talkThrough(stage, ann, rooms, 2_000, () => askThrough(stage, operator, room, restartOften(server, 15_000)));
  }, 180_000);

  const name = () => new URL(place.url).pathname.slice(1);
  const endSessions = () =>
    admin.sql`select pg_terminate_backend(pid) from pg_stat_activity where datname = ${name()} and pid <> pg_backend_pid()`;

  const readiness = () =>
    Promise.all(stage.bridges.map(async ({ url }) => (await fetch(`${url}/health/ready`)).status));

  it("one whose disk is full when the model has answered costs no apology: what was answered is kept until there is room", async () => {
    const [room = ""] = rooms;
    const full = Promise.withResolvers<void>();
    const waits = async (request: ModelRequest) => {
      await full.promise;
      return answerEach(request);
    };
    stage.model.on("when it is full", waits);
    const isAsked = (request: ModelRequest) => newMessages(request).some(({ body }) => body === "when it is full");
    await ann.say(room, "when it is full");
    await stage.model.request(isAsked);
    const tables = ["steps", "outbox", "turns", "events"];
    await stage.query(`
      create or replace function full_disk() returns trigger language plpgsql as
        $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
      ${tables.map((table) => `create trigger full_disk before insert or update on ${table} execute function full_disk();`).join("\n")}`);
    full.resolve();
    await expect.poll(readiness).toContain(503);
    await systemClock.sleep(3_000);
    expect(await readiness()).toContain(503);
    await stage.query(tables.map((table) => `drop trigger full_disk on ${table};`).join("\n"));
    await ann.waitForMessage(room, ({ body }) => body === answerTo("when it is full"), { within: 60_000 });
    await expect.poll(readiness, { timeout: 30_000 }).toEqual([200, 200]);
    await stage.check();
    expect(stage.model.requests.filter(isAsked)).toHaveLength(1);
    expect(await count(stage, "turns where state = 'failed'")).toBe(0);
  }, 120_000);

  it.each<[string, () => Promise<unknown>, () => Promise<unknown>]>([
    [
      "takes no writes",
      () => admin.sql.unsafe(`alter database ${name()} set default_transaction_read_only = on`),
      () => admin.sql.unsafe(`alter database ${name()} reset default_transaction_read_only`),
    ],
    [
      "says that its disk is full",
      () =>
        stage.query(`
          create or replace function full_disk() returns trigger language plpgsql as
            $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
          create trigger full_disk before insert or update on events execute function full_disk();
          create trigger full_disk before insert or update on outbox execute function full_disk()`),
      () => stage.query("drop trigger full_disk on events; drop trigger full_disk on outbox"),
    ],
  ])(
    "one that %s is never hidden behind a 200, and nothing is lost",
    async (what, fail, heal) => {
      await fail();
      await endSessions();
      const event = {
        event_id: `$${what}`,
        room_id: rooms[0],
        sender: ann.id,
        type: "m.room.message",
        content: { msgtype: "m.notice", body: what },
        origin_server_ts: Date.now(),
      };
      expect(await push(stage, what, [event])).toBeGreaterThanOrEqual(500);
      expect(await readiness()).toContain(503);
      for (const room of rooms) await ann.say(room, what);
      await expect.poll(() => push(stage, what, [event]), { timeout: 10_000 }).toBeGreaterThanOrEqual(500);
      await heal();
      await endSessions();
      for (const room of rooms)
        await ann.waitForMessage(room, ({ body }) => body === answerTo(what), { within: 60_000 });
      await stage.check();
      expect(await count(stage, `outbox where content->>'body' = '${answerTo(what)}'`)).toBe(rooms.length);
    },
    120_000,
  );
});
