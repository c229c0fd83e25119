import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { z } from "zod";
import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { commandLine, run } from "./program.ts";

const startMs = 60_000;
const stopMs = 10_000;

const launchSchema = z.object({
  /** Absolute path of the homeserver's folder, which is named in `args`. */
  dir: z.string(),
  port: z.number(),
  serverName: z.string(),
  /** True: it goes on when this process ends. False: it ends when its standard input does. */
  detached: z.boolean(),
  file: z.string(),
  args: z.array(z.string()),
  /** The container that may outlive the process which started it. */
  container: z.object({ engine: z.string(), name: z.string() }).optional(),
});

/** Command that starts a Synapse. */
export type Launch = z.infer<typeof launchSchema>;

const runningSchema = launchSchema.extend({ pid: z.number() });
const runningFile = (dir: string): string => join(dir, "running.json");

/** A Synapse on 127.0.0.1. Its data stays in its folder, whatever happens to the process. */
export class Homeserver {
  readonly #launch: Launch;
  #pid: number;

  constructor(launch: Launch, pid = 0) {
    this.#launch = launch;
    this.#pid = pid;
  }

  /** The detached homeserver of a folder, where it runs and answers. */
  static async find(dir: string): Promise<Homeserver | undefined> {
    const text = await readFile(runningFile(dir), "utf8").catch(() => "null");
    const { data } = runningSchema.safeParse(JSON.parse(text));
    if (!data || !(await commandLine(data.pid)).includes(dir)) return undefined;
    const { pid, ...launch } = data;
    const found = new Homeserver(launch, pid);
    return (await found.#isAnswering()) ? found : undefined;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#launch.port}`;
  }

  get serverName(): string {
    return this.#launch.serverName;
  }

  get logFile(): string {
    return join(this.#launch.dir, "homeserver.log");
  }

  /** Of the process that runs now, or ran last. */
  get pid(): number {
    return this.#pid;
  }

  /**
   * Starts it, again where it has been running, on the same port and data. Resolves when it answers.
   * @throws UserError with the end of its log
   */
  async restart(): Promise<void> {
    await this.kill();
    const { dir, file, args, detached } = this.#launch;
    const log = createWriteStream(this.logFile, { flags: "a" });
    await once(log, "open");
    const { size } = await stat(this.logFile);
    // In a session of its own: Ctrl-C in the terminal does not reach it.
    const started = execa(file, args, {
      cwd: dir,
      detached: true,
      reject: false,
      buffer: false,
      stdin: detached ? "ignore" : "pipe",
      stdout: log,
      stderr: log,
    });
    if (detached) started.nodeChildProcess.unref();
    log.destroy();
    if (started.pid === undefined) throw new UserError((await started).shortMessage ?? `${file} cannot be started`);
    this.#pid = started.pid;
    if (detached) await writeFile(runningFile(dir), JSON.stringify({ ...this.#launch, pid: this.#pid }));
    const deadline = systemClock.monotonic() + startMs;
    while (!(await this.#isAnswering())) {
      const isLate = systemClock.monotonic() > deadline;
      if (!isLate && isAlive(this.#pid)) {
        await systemClock.sleep(50);
        continue;
      }
      await this.kill();
      const end = (await readFile(this.logFile)).subarray(size).toString().trim().split("\n").slice(-12).join("\n");
      const what = isLate ? `does not answer after ${startMs / 1000} s` : "ended as soon as it was started";
      throw new UserError(`Synapse ${what}. ${this.logFile} says:\n${end}`);
    }
  }

  /** Ends it in order; by force where that takes longer than 10 s. */
  async stop(): Promise<void> {
    const deadline = systemClock.monotonic() + stopMs;
    signal(this.#pid, "SIGTERM");
    while (isAlive(this.#pid) && systemClock.monotonic() < deadline) await systemClock.sleep(25);
    await this.kill();
  }

  /** Ends it at once, like a crash. */
  async kill(): Promise<void> {
    const { dir, container } = this.#launch;
    signal(this.#pid, "SIGKILL");
    while (isAlive(this.#pid)) await systemClock.sleep(5);
    if (container) await run(container.engine, ["rm", "--force", container.name], stopMs).catch(() => {});
    await rm(runningFile(dir), { force: true });
  }

  async #isAnswering(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/_matrix/client/versions`, { signal: AbortSignal.timeout(2_000) })).ok;
    } catch {
      return false;
    }
  }
}

/** Process 0 stands for "not started"; to the system it would mean our own group. */
const signal = (pid: number, name: NodeJS.Signals | 0): boolean => {
  if (pid === 0) return false;
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
};

const isAlive = (pid: number): boolean => signal(pid, 0);
