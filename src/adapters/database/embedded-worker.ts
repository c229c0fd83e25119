import { constants } from "node:fs";
import { cp } from "node:fs/promises";
import { flushCompileCache } from "node:module";
import { setFlagsFromString } from "node:v8";
import { parentPort, workerData } from "node:worker_threads";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";
import { planning } from "./planning.ts";

// The embedded PostgreSQL, in a thread of its own so that a long query does not stop the event loop.
// It is handed whole batches of the wire protocol and answers with the bytes that came back.

interface Batch {
  readonly id: number;
  readonly bytes: Uint8Array;
}

/** Asks for a copy of the files as they are after a checkpoint, while nobody writes. */
interface Copy {
  readonly id: number;
  readonly copyTo: string;
}

// V8 optimises what has run for so long, 13 million by default: of PostgreSQL's functions one takes it a second and
// 600 MB, which the start of a process has a better use for.
setFlagsFromString("--wasm-tiering-budget=250000000");

const { dataDir } = workerData as { dataDir: string };
const database = await PGlite.create({
  dataDir,
  extensions: { vector },
  // Pages that are not in memory are in the system's cache.
  postgresqlconf: [
    "shared_buffers = 16MB",
    "max_wal_size = 256MB",
    "random_page_cost = 1.1",
    ...Object.entries(planning).map(([name, value]) => `${name} = ${value}`),
  ],
});

async function execute(bytes: Uint8Array): Promise<Buffer> {
  const answer: Buffer[] = [];
  await database.execProtocolRawStream(bytes, { onRawData: (data) => answer.push(Buffer.from(data)) });
  return Buffer.concat(answer);
}

async function copy(to: string): Promise<void> {
  await database.exec("checkpoint");
  await cp(dataDir, to, { recursive: true, force: false, errorOnExist: true, mode: constants.COPYFILE_FICLONE });
}

function startupMessage(): Buffer {
  const parameters = Buffer.from("user\0postgres\0database\0postgres\0\0");
  const head = Buffer.alloc(8);
  head.writeInt32BE(8 + parameters.length);
  head.writeInt32BE(196_608, 4); // protocol 3.0
  return Buffer.concat([head, parameters]);
}

parentPort?.postMessage({ greeting: await execute(startupMessage()) });
// For the next start, also where this one is killed.
flushCompileCache();

let queue = Promise.resolve();
parentPort?.on("message", (message: Batch | Copy | "close") => {
  queue = queue.then(async () => {
    if (message === "close") {
      await database.close();
      parentPort?.postMessage({ isClosed: true });
    } else if ("copyTo" in message) {
      const failed = await copy(message.copyTo).then(() => undefined, String);
      parentPort?.postMessage({ id: message.id, bytes: Buffer.from(failed ?? "") });
    } else {
      parentPort?.postMessage({ id: message.id, bytes: await execute(message.bytes) });
    }
  });
});
