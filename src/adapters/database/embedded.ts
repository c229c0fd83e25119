import { existsSync } from "node:fs";
import { access, chmod, constants, mkdir, rename, rm } from "node:fs/promises";
import { Duplex } from "node:stream";
import { Worker } from "node:worker_threads";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { newestDump } from "./dump-files.ts";
import { lockDirectory } from "./lock.ts";

export interface Embedded {
  /** One connection to the one session that exists; for the `socket` option of postgres.js. */
  socket(): Duplex;
  /** Copies the database into a folder that is not there yet, where it can be opened; statements wait meanwhile. */
  copyTo(dir: string): Promise<void>;
  close(): Promise<void>;
}

type FromWorker =
  | { readonly greeting: Uint8Array }
  | { readonly id: number; readonly bytes: Uint8Array }
  | { readonly isClosed: true };

/** Message types of the frontend protocol after which the server answers: Sync, Query, Flush. */
const endsBatch = new Set(["S", "Q", "H"].map((type) => type.charCodeAt(0)));
const terminate = "X".charCodeAt(0);

/**
 * Starts PGlite on `dir`, which is locked against a second process: two on one directory lose rows silently.
 * The data survive any death of the process. PGlite never calls fsync: a power failure costs all rows since the last
 * checkpoint.
 * @param onBegun called when its thread has all that it needs: from then on the caller's thread may be busy
 */
export async function openEmbedded(dir: string, onBegun: () => void = () => {}): Promise<Embedded> {
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw new UserError(
      `database.dir: ${dir} cannot be made (${messageOf(error)}). Make the folder, and give it to the user that runs ` +
        `Clevernet: chown USER ${dir}`,
    );
  });
  const unlock = await lockDirectory(dir);
  const dataDir = `${dir}/postgres`;
  if (!existsSync(dataDir)) await initialise(dataDir);
  await access(`${dataDir}/PG_VERSION`, constants.R_OK | constants.W_OK).catch(async (error: unknown) => {
    await unlock();
    // Without this file PGlite would take the folder for a new one, and write over what is left in it.
    if (error instanceof Error && "code" in error && error.code === "ENOENT")
      throw damagedError(dir, "PG_VERSION is missing");
    throw new UserError(
      `database.dir: ${dataDir} cannot be opened (${messageOf(error)}). Give it to the user that runs Clevernet: ` +
        `chown -R USER ${dir}`,
    );
  });
  // PGlite makes files that everybody may write: the folder keeps them to the user that runs us.
  await chmod(dataDir, 0o700);
  const worker = startWorker(dataDir);
  onBegun();
  const answers = new Map<number, (bytes: Buffer) => void>();
  let nextId = 0;
  let onClosed = (): void => {};
  const greeting = await new Promise<Buffer>((resolve, reject) => {
    worker.once("error", reject);
    worker.on("message", (message: FromWorker) => {
      if ("greeting" in message) resolve(Buffer.from(message.greeting));
      else if ("isClosed" in message) onClosed();
      else {
        answers.get(message.id)?.(Buffer.from(message.bytes));
        answers.delete(message.id);
      }
    });
  }).catch(async (error: unknown) => {
    await unlock();
    throw damagedError(dir, messageOf(error));
  });
  const ask = (what: { bytes: Buffer } | { copyTo: string }): Promise<Buffer> =>
    new Promise((resolve) => {
      const id = nextId++;
      answers.set(id, resolve);
      worker.postMessage({ id, ...what });
    });

  return {
    socket: () => protocolStream(greeting, (bytes) => ask({ bytes })),
    async copyTo(target) {
      await mkdir(target, { recursive: true, mode: 0o700 });
      const failed = (await ask({ copyTo: `${target}/postgres` })).toString();
      if (failed !== "") throw new Error(failed);
    },
    async close() {
      const closed = new Promise<void>((resolve) => {
        onClosed = resolve;
      });
      worker.postMessage("close");
      await closed;
      await worker.terminate();
      await unlock();
    },
  };
}

/** The files cannot be read, or are not what they should be: what was seen, and the way back. */
function damagedError(dir: string, seen: string): UserError {
  const dump = newestDump(dir);
  const back =
    dump === undefined
      ? "There is no dump in it: bring the folder back from a backup"
      : `Then restore the last dump: npm run clevernet -- restore ${dump}`;
  return new UserError(
    `database.dir: the database in ${dir} is damaged, and cannot be opened (${seen}). Move it away: ` +
      `mv ${dir}/postgres ${dir}/postgres.damaged. ${back}, or start anew without its data.`,
  );
}

const startWorker = (dataDir: string): Worker =>
  new Worker(new URL("./embedded-worker.ts", import.meta.url), {
    workerData: { dataDir },
    resourceLimits: { maxYoungGenerationSizeMb: 8 },
  });

/** Making a new database takes 400 MB that WebAssembly never gives back: a thread of its own takes them with it. */
async function initialise(dataDir: string): Promise<void> {
  const unfinished = `${dataDir}.new`;
  await rm(unfinished, { recursive: true, force: true });
  const worker = startWorker(unfinished);
  await new Promise<void>((resolve, reject) => {
    worker.once("error", reject);
    worker.on("message", (message: FromWorker) => {
      if ("greeting" in message) worker.postMessage("close");
      if ("isClosed" in message) resolve();
    });
  });
  await worker.terminate();
  await rename(unfinished, dataDir);
}

/**
 * The server's side of the wire protocol as a stream: the start-up message gets the recorded greeting, everything
 * after it is cut into batches at the messages that ask for an answer.
 */
function protocolStream(greeting: Buffer, execute: (batch: Buffer) => Promise<Buffer>): Duplex {
  let unread: Buffer = Buffer.alloc(0);
  let batch: Buffer[] = [];
  let hasStarted = false;
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      unread = unread.length > 0 ? Buffer.concat([unread, chunk]) : chunk;
      if (!hasStarted) {
        if (unread.length < 8 || unread.length < unread.readInt32BE(0)) return done();
        unread = unread.subarray(unread.readInt32BE(0));
        hasStarted = true;
        stream.push(greeting);
      }
      let end = 0;
      let from = 0;
      while (end + 5 <= unread.length) {
        const length = 1 + unread.readInt32BE(end + 1);
        if (end + length > unread.length) break;
        const type = unread[end] ?? 0;
        end += length;
        if (type === terminate) {
          stream.push(null);
          break;
        }
        if (endsBatch.has(type)) {
          batch.push(unread.subarray(from, end));
          from = end;
          void execute(Buffer.concat(batch)).then((answer) => stream.push(answer));
          batch = [];
        }
      }
      if (end > from) batch.push(unread.subarray(from, end));
      unread = unread.subarray(end);
      done();
    },
    final(done) {
      stream.push(null);
      done();
    },
  });
  // Members of a network socket that postgres.js uses.
  return Object.assign(stream, {
    readyState: "open",
    setKeepAlive: () => stream,
    setNoDelay: () => stream,
    ref: () => stream,
    unref: () => stream,
  });
}
