import { afterEach, beforeEach } from "vitest";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { type Leases, openLeases } from "../../src/adapters/database/leases.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { type Notifier, openNotifier } from "../../src/adapters/database/notify.ts";
import { type Clock, systemClock } from "../../src/base/lib/clock.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { createSharedDatabase } from "./shared-postgres.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** Parts that each process has of its own; it reaches the database through a proxy. */
export interface OwnProcess {
  readonly proxy: TcpProxy;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly leases: Leases;
}

/** For each test of the group a PostgreSQL database with the whole schema, for several processes. */
export function sharedByProcesses() {
  let url = "";
  let ends: (() => Promise<unknown>)[] = [];
  const atEnd = (end: () => Promise<unknown>): void => void ends.push(end);
  const open = async (): Promise<Database> => {
    const database = await openDatabase({ url });
    atEnd(() => database.close());
    return database;
  };
  beforeEach(async () => {
    const place = await createSharedDatabase();
    url = place.url;
    atEnd(() => place.drop());
    await migrate(await open());
  });
  afterEach(async () => {
    for (const end of ends.reverse()) await end();
    ends = [];
  });
  return {
    /** A connection of the test's own. */
    open,
    /** Registers an end; ends run from the last to the first. */
    atEnd,
    /** Its leases are not started yet. */
    async enter(name: string, clock: Clock = systemClock): Promise<OwnProcess> {
      const proxy = await startTcpProxy(url);
      const database = await openDatabase({ url: proxy.url });
      const notifier = await openNotifier(database, systemClock, silentLog);
      const leases = openLeases({ database, notifier, name, clock, log: silentLog });
      atEnd(async () => {
        await proxy.accept();
        await leases.stop();
        await notifier.close();
        await database.close();
        await proxy.stop();
      });
      return { proxy, database, notifier, leases };
    },
  };
}
