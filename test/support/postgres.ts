import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import postgres from "postgres";
import { secret } from "../../src/base/lib/ids.ts";
import { cacheDir } from "./cache-dir.ts";
import { freePort } from "./free-port.ts";
import { eventually } from "./poll.ts";
import { binaries, installPostgres, withAdminPath } from "./postgres-files.ts";

export interface TestDatabase {
  readonly url: string;
  /** Removes it, whoever is still connected. */
  drop(): Promise<void>;
}

/** Makes an empty database on a server; the URL is that of a user who may. */
export async function createDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `test_${secret(6)}`;
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  await execute(serverUrl, `create database ${name}`);
  return { url: url.href, drop: () => execute(serverUrl, `drop database if exists ${name} with (force)`) };
}

async function execute(url: string, statement: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    await sql.unsafe(statement);
  } finally {
    await sql.end();
  }
}

/**
 * In namespaces of its own, so that all of its processes go when the first one does, and that one when we do. Sets up
 * the folder (1) with the data (2) on it, and becomes the server on port (3).
 */
const becomePostgres = `set -e
mount --make-rprivate /
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/dev/shm"
mount -t proc proc "$1/proc"
mount --bind "$2" "$1/data"
exec chroot "$1" setpriv --reuid=postgres --regid=postgres --clear-groups --pdeathsig KILL \
  ${binaries}/postgres -D /data -p "$3" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
  -c max_connections=200 -c shared_buffers=64MB`;

/** A real PostgreSQL 18 with pgvector, with `fsync` on. It ends with this process. */
export class PostgresServer {
  /** Of the database `postgres`, as its owner. */
  readonly url: string;
  readonly #root: string;
  readonly #data: string;
  readonly #port: number;
  #pid = 0;
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(root: string, data: string, port: number) {
    this.#root = root;
    this.#data = data;
    this.#port = port;
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  }

  /** Starts a new server with an empty cluster of its own. */
  static async create(onProgress: (text: string) => void = () => {}): Promise<PostgresServer> {
    const root = await installPostgres(cacheDir, onProgress);
    const data = await mkdtemp(join(tmpdir(), "clevernet-postgres-"));
    await execa("cp", ["--archive", "--no-target-directory", join(root, "template"), data]);
    const server = new PostgresServer(root, data, await freePort());
    try {
      await server.start();
    } catch (error) {
      await server.dispose();
      throw error;
    }
    return server;
  }

  /** Starts it, again on the same port and data. Resolves when it answers. */
  async start(): Promise<void> {
    const logFile = join(this.#data, "log");
    const log = createWriteStream(logFile, { flags: "a" });
    await once(log, "open");
    const namespaces = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--kill-child"];
    const shell = ["sh", "-c", becomePostgres, "sh", this.#root, this.#data, String(this.#port)];
    const started = execa("setpriv", ["--pdeathsig", "KILL", ...namespaces, ...shell], {
      stdin: "ignore",
      stdout: log,
      stderr: log,
      env: withAdminPath,
      buffer: false,
      reject: false,
    });
    log.destroy();
    this.#pid = started.pid ?? 0;
    this.#ended = started;
    await Promise.race([
      eventually(() => execute(this.url, "select 1").then(() => true), { what: `PostgreSQL, log ${logFile}` }),
      started.then(async () => {
        throw new Error(
          `PostgreSQL ended as soon as it was started:\n${(await readFile(logFile, "utf8")).slice(-1000)}`,
        );
      }),
    ]);
  }

  /** Ends it in order, though without waiting for its clients. */
  stop(): Promise<void> {
    return this.#end("SIGINT");
  }

  /** Ends all of its processes at once, like a crash. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }

  createDatabase(): Promise<TestDatabase> {
    return createDatabase(this.url);
  }

  /** Ends it and removes its data. */
  async dispose(): Promise<void> {
    await this.kill();
    await rm(this.#data, { recursive: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const children = await readFile(`/proc/${this.#pid}/task/${this.#pid}/children`, "utf8").catch(() => "");
    const server = Number.parseInt(children, 10);
    if (server > 0) process.kill(server, signal);
    await this.#ended;
  }
}
