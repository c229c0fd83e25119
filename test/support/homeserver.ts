import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createRegistration, type Registration, writeRegistration } from "../../src/adapters/matrix/registration.ts";
import { startHomeserver } from "../../src/edges/demo/homeserver.ts";
import type { Homeserver } from "../../src/edges/demo/homeserver-process.ts";
import { cacheDir } from "./cache-dir.ts";
import { freePort } from "./free-port.ts";

export interface TestHomeserver {
  readonly url: string;
  readonly serverName: string;
  /** The process: to stop, kill and restart it, and to read its log. */
  readonly synapse: Homeserver;
  /** Folder of its state, for whatever else belongs to the test; removed by `dispose`. */
  readonly dir: string;
  readonly registration: Registration;
  readonly registrationFile: string;
  /** URL at which it expects the application service. */
  readonly applicationServiceUrl: string;
  /** True if each event so far is in the queue of events to push, which is in its memory alone. */
  hasQueuedAll(): boolean;
  /** While it is dead: as if it had died before it put the newest event into that queue. */
  unqueueNewest(): void;
  /** While it is dead: as if it did not remember what it was sent under which transaction id. */
  forgetTransactions(): void;
  /** Ends it and removes its state. */
  dispose(): Promise<void>;
}

/** Starts a Synapse of its own, with an empty database, that knows Clevernet as an application service. */
export async function startTestHomeserver(
  options: { applicationServicePort?: number; extraConfig?: Readonly<Record<string, unknown>> } = {},
): Promise<TestHomeserver> {
  const { applicationServicePort = await freePort(), extraConfig = {} } = options;
  const serverName = "clevernet.test";
  const applicationServiceUrl = `http://127.0.0.1:${applicationServicePort}`;
  const dir = await mkdtemp(join(tmpdir(), "clevernet-homeserver-"));
  const registration = createRegistration({ serverName, url: applicationServiceUrl });
  const registrationFile = join(dir, "registration.yaml");
  await writeRegistration(registrationFile, registration);
  const synapse = await startHomeserver({
    dir,
    port: await freePort(),
    serverName,
    registrations: [registrationFile],
    extraConfig,
    logLevel: "INFO",
    cacheDir,
    version: process.env.TEST_SYNAPSE_VERSION,
    onProgress: () => {},
  });
  return {
    url: synapse.url,
    serverName,
    synapse,
    dir,
    registration,
    registrationFile,
    applicationServiceUrl,
    hasQueuedAll: () => withDatabase(dir, (database) => database.prepare(unqueued).get() === undefined),
    unqueueNewest: () => withDatabase(dir, (database) => database.exec(unqueueNewest)),
    forgetTransactions: () => withDatabase(dir, (database) => database.exec(forgetTransactions)),
    async dispose() {
      await synapse.kill();
      await rm(dir, { recursive: true });
    },
  };
}

const unqueued = `
  select 1 from appservice_stream_position place, events where events.stream_ordering > place.stream_ordering limit 1`;

const unqueueNewest = `
  update appservice_stream_position set stream_ordering = (select max(stream_ordering) - 1 from events)`;

const forgetTransactions = "delete from event_txn_id_device_id";

const withDatabase = <Result>(dir: string, use: (database: DatabaseSync) => Result): Result => {
  const database = new DatabaseSync(join(dir, "homeserver.db"), { timeout: 5_000 });
  try {
    return use(database);
  } finally {
    database.close();
  }
};
