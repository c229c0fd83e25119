import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import postgres from "postgres";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startTestHomeserver, type TestHomeserver } from "../support/homeserver.ts";
import { HttpProxy, type RequestHead } from "../support/http-proxy.ts";
import { Listener } from "../support/listener.ts";
import { PostgresServer, type TestDatabase } from "../support/postgres.ts";
import { createSharedDatabase, postgresMissing } from "../support/shared-postgres.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";
import { createUser, type TestUser } from "../support/user.ts";

it("nobody is given a port that somebody else has been given", async () => {
  const ports = new Set<number>();
  for (let n = 0; n < 500; n++) ports.add(await freePort());
  expect(ports.size).toBe(500);
});

it("a connection that is cut while it ends is closed all the same", async () => {
  const accepted = Promise.withResolvers<Socket>();
  const listener = new Listener(createServer(accepted.resolve));
  await listener.accept();
  const client = connect(listener.port, "127.0.0.1").on("error", () => {});
  const socket = await accepted.promise;
  const closed = once(socket, "close");
  socket.end("a last word");
  listener.cut();
  await closed;
  client.destroy();
  await listener.refuse();
});

describe("homeserver", () => {
  let homeserver: TestHomeserver;
  let ann: TestUser;
  let ben: TestUser;
  let room: string;
  beforeAll(async () => {
    homeserver = await startTestHomeserver();
    [ann, ben] = await Promise.all([createUser(homeserver, "ann"), createUser(homeserver, "ben")]);
    room = await ann.createDirectRoom(ben.id);
    await ben.waitForMembership(room, "invite");
    await ben.join(room);
    await ann.waitForMembership(room, "join", ben.id);
  });
  afterAll(async () => {
    ann.stop();
    ben.stop();
    await homeserver.dispose();
  });

  it("carries a message from user to user", async () => {
    const id = await ann.say(room, "hello");
    expect(await ben.waitForMessage(room, ({ body }) => body === "hello")).toMatchObject({ id, sender: ann.id });
  });

  it("keeps replies, threads and edits apart", async () => {
    const root = await ann.say(room, "root");
    await ben.reply(room, root, "replied");
    await ben.thread(room, root, "threaded");
    await ann.edit(room, root, "edited");
    const { content } = await ann.waitForMessage(room, ({ body }) => body === "replied");
    expect(content).toMatchObject({ "m.relates_to": { "m.in_reply_to": { event_id: root } } });
    const threaded = await ann.waitForMessage(room, ({ body }) => body === "threaded");
    expect(threaded.content).toMatchObject({ "m.relates_to": { rel_type: "m.thread", event_id: root } });
    const edit = await ben.waitForMessage(room, ({ body }) => body === "* edited");
    expect(edit.content).toMatchObject({ "m.relates_to": { rel_type: "m.replace", event_id: root } });
  });

  it("empties a redacted message", async () => {
    const id = await ann.say(room, "a secret");
    await ann.redact(room, id);
    expect((await ben.messages(room)).find((message) => message.id === id)).toMatchObject({ body: "" });
  });

  it("says what it saw instead of the message that was waited for", async () => {
    await ann.say(room, "seen");
    await ben.waitForMessage(room, ({ body }) => body === "seen");
    const waiting = ben.waitForMessage(room, ({ body }) => body === "never", { within: 1 });
    await expect(waiting).rejects.toThrow(/waited 1 ms for .*never.*instead it saw:(.|\n)*seen/);
  });

  it("keeps its messages when it is killed and started again", async () => {
    await ann.say(room, "before");
    await homeserver.synapse.kill();
    await expect(ann.say(room, "meanwhile")).rejects.toThrow("fetch failed");
    await homeserver.synapse.restart();
    await ann.say(room, "after");
    await ben.waitForMessage(room, ({ body }) => body === "after");
    expect((await ben.messages(room)).slice(-2).map(({ body }) => body)).toEqual(["before", "after"]);
  });

  describe("behind a proxy", () => {
    let proxy: HttpProxy;
    let cat: TestUser;
    const isSend = ({ path }: RequestHead) => path.includes("/send/");
    const bodies = async () => (await ann.messages(room)).map(({ body }) => body);
    beforeAll(async () => {
      proxy = await HttpProxy.start(homeserver.url);
      cat = await createUser(proxy, "cat");
      await ann.invite(room, cat.id);
      await cat.waitForMembership(room, "invite");
      await cat.join(room);
    });
    afterAll(async () => {
      cat.stop();
      await proxy.stop();
    });

    it("gets a held request only when it is released", async () => {
      const fault = proxy.hold({ when: isSend });
      const sending = cat.say(room, "held");
      await fault.reached();
      expect(await bodies()).not.toContain("held");
      fault.lift();
      await sending;
      expect(await bodies()).toContain("held");
    });

    it("never gets a held request whose connection is cut", async () => {
      const fault = proxy.hold({ when: isSend });
      const sending = cat.say(room, "held and cut");
      await fault.reached();
      proxy.cut();
      await expect(sending).rejects.toThrow("fetch failed");
      fault.lift();
      await cat.say(room, "next");
      expect(await bodies()).not.toContain("held and cut");
    });

    it("has carried out a request whose answer is held", async () => {
      const fault = proxy.holdAnswer({ when: isSend });
      const sending = cat.say(room, "answer held");
      await fault.reached();
      expect(await bodies()).toContain("answer held");
      fault.lift();
      await sending;
    });

    it("has carried out a request whose answer is cut", async () => {
      proxy.cutAnswer({ when: isSend, times: 1 });
      await expect(cat.say(room, "answer cut")).rejects.toThrow("fetch failed");
      expect(await bodies()).toContain("answer cut");
    });

    it("never gets a request that the proxy answers", async () => {
      const body = { errcode: "M_LIMIT_EXCEEDED" };
      const fault = proxy.respond({ status: 429, headers: { "retry-after": "1" }, body }, { when: isSend, times: 1 });
      await expect(cat.say(room, "refused")).rejects.toThrow('429 {"errcode":"M_LIMIT_EXCEEDED"}');
      expect(fault.struck).toHaveLength(1);
      expect(await bodies()).not.toContain("refused");
    });

    it("cannot be reached while the proxy refuses, and can afterwards", async () => {
      await proxy.refuse();
      await expect(cat.say(room, "nobody there")).rejects.toThrow("fetch failed");
      await proxy.accept();
      await cat.say(room, "back");
      await cat.waitForMessage(room, ({ body }) => body === "back");
    });
  });
});

describe.skipIf(postgresMissing)(`PostgreSQL ${postgresMissing ?? ""}`, () => {
  let database: TestDatabase;
  let sql: postgres.Sql;
  beforeAll(async () => {
    database = await createSharedDatabase();
    sql = postgres(database.url, { max: 1, onnotice: () => {} });
  });
  afterAll(async () => {
    await sql.end();
    await database.drop();
  });

  it("gives an empty database with pgvector", async () => {
    expect(await sql`select 1 from pg_tables where schemaname = 'public'`).toHaveLength(0);
    await sql`create extension vector`;
    expect(await sql`select '[1,2]'::vector <-> '[1,4]' as distance`).toEqual([{ distance: 2 }]);
  });

  it("has carried out a statement whose answer the proxy holds", async () => {
    await sql`create table kept (what text)`;
    const proxy = await startTcpProxy(database.url);
    const client = postgres(proxy.url, { max: 1 });
    await client`select 1`;
    proxy.hold("answers");
    const inserting = client`insert into kept values ('answer lost')`.simple().execute();
    await expect.poll(() => sql`select what from kept`).toEqual([{ what: "answer lost" }]);
    proxy.cut();
    await expect(inserting).rejects.toThrow(/CONNECTION_CLOSED|ECONNRESET/);
    await client.end({ timeout: 0 });
    await proxy.stop();
  });

  describe("of a test's own", () => {
    let server: PostgresServer;
    beforeAll(async () => {
      server = await PostgresServer.create();
    });
    afterAll(() => server.dispose());

    it.each(["kill", "stop"] as const)("keeps what was committed after %s and start", async (end) => {
      const { url } = await server.createDatabase();
      const before = postgres(url, { max: 1 });
      await before`create table kept as select 7 as number`;
      await before.end();
      await server[end]();
      await server.start();
      const after = postgres(url, { max: 1 });
      expect(await after`select number from kept`).toEqual([{ number: 7 }]);
      await after.end();
    });
  });
});
