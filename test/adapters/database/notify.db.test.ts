import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { openDatabase } from "../../../src/adapters/database/connection.ts";
import { type Notifier, openNotifier } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { UserError } from "../../../src/base/lib/errors.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { eventually } from "../../support/poll.ts";
import { createSharedDatabase, postgresMissing } from "../../support/shared-postgres.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";

describe.skipIf(postgresMissing)("word between processes", () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  /** Two processes on one database, the second behind a proxy. */
  const two = async () => {
    const place = await createSharedDatabase();
    closing.push(() => place.drop());
    const proxy = await startTcpProxy(place.url);
    closing.push(() => proxy.stop());
    const open = async (url: string): Promise<Notifier> => {
      const database = await openDatabase({ url });
      closing.push(() => database.close());
      const notifier = await openNotifier(database, systemClock, silentLog);
      closing.push(() => notifier.close());
      return notifier;
    };
    return { first: await open(place.url), second: await open(proxy.url), proxy };
  };

  it("reaches the others who listen for the topic, in order, and not the one who tells", async () => {
    const { first, second } = await two();
    const heard: unknown[] = [];
    const echo: unknown[] = [];
    second.on("events", (about) => heard.push(about));
    second.on("outbox", (about) => echo.push(about));
    first.on("events", (about) => echo.push(about));
    first.tell("events", ["!one", "!two"]);
    first.tell("events", ["!three"]);
    first.tell("permissions");
    first.tell("events");
    await eventually(() => heard.length === 3, { what: "three words" });
    expect(heard).toEqual([["!one", "!two"], ["!three"], []]);
    expect(echo).toEqual([]);
  });

  it("may be longer than PostgreSQL takes at once", async () => {
    const { first, second } = await two();
    const heard: string[] = [];
    second.on("events", (about) => heard.push(...(about ?? [])));
    const rooms = Array.from({ length: 500 }, (_, index) => `!${"ü".repeat(40)}${index}`);
    first.tell("events", rooms);
    await eventually(() => heard.length === rooms.length, { what: "all of it" });
    expect(heard).toEqual(rooms);
  });

  it("comes again after the connection was lost for a while, and that something may have been missed is said", async () => {
    const { first, second, proxy } = await two();
    const heard: unknown[] = [];
    second.on("stop", (about) => heard.push(about));
    await proxy.refuse();
    await sleep(500);
    await proxy.accept();
    await eventually(() => heard.length > 0, { what: "the connection to be replaced" });
    first.tell("stop", ["turn"]);
    await eventually(() => heard.length > 1, { what: "word" });
    expect(heard).toEqual([undefined, ["turn"]]);
  });

  it("that PostgreSQL lets nobody hear at the start is said in a sentence", async () => {
    const place = await createSharedDatabase();
    closing.push(() => place.drop());
    const proxy = await startTcpProxy(place.url);
    closing.push(() => proxy.stop());
    const database = await openDatabase({ url: proxy.url });
    closing.push(() => database.close());
    await proxy.refuse();
    const opening = openNotifier(database, systemClock, silentLog);
    await expect(opening).rejects.toThrow(UserError);
    await expect(opening).rejects.toThrow(/^database.url: PostgreSQL .*ECONNREFUSED/);
  });
});
