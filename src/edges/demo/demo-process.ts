import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { commandLine } from "./program.ts";

const main = join(import.meta.dirname, "../../main.ts");
const startMs = 60_000;
const logLines = 20;

export interface BackgroundOptions {
  /** For people: "The … has ended". */
  readonly name: string;
  /** Arguments of this program by which the process is known again. */
  readonly args: readonly string[];
  readonly pidFile: string;
  readonly logFile: string;
}

/** Starts this program once more, as a process that goes on when its starter ends. */
export class Background {
  readonly #options: BackgroundOptions;

  constructor(options: BackgroundOptions) {
    this.#options = options;
  }

  get logFile(): string {
    return this.#options.logFile;
  }

  /** Its process id; undefined when it does not run. A later process with the same id is told apart. */
  async pid(): Promise<number | undefined> {
    const { pidFile, args } = this.#options;
    const pid = Number(await readFile(pidFile, "utf8").catch(() => ""));
    if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
    const line = await commandLine(pid);
    return [main, ...args].every((part) => line.includes(part)) ? pid : undefined;
  }

  /**
   * Starts it, and resolves when `isUp` says so.
   * @param moreArgs follow the arguments that it is known by
   * @throws UserError with the end of its log
   */
  async start(isUp: () => Promise<boolean>, moreArgs: readonly string[] = []): Promise<void> {
    const { name, args, pidFile, logFile } = this.#options;
    const log = createWriteStream(logFile, { flags: "a", mode: 0o600 });
    await once(log, "open");
    const { size } = await stat(logFile);
    // In a session of its own: Ctrl-C in the terminal does not reach it.
    const started = execa(process.execPath, ["--max-semi-space-size=4", main, ...args, ...moreArgs], {
      detached: true,
      reject: false,
      buffer: false,
      stdin: "ignore",
      stdout: log,
      stderr: log,
    });
    started.nodeChildProcess.unref();
    log.destroy();
    if (started.pid === undefined)
      throw new UserError((await started).shortMessage ?? `The ${name} cannot be started.`);
    await writeFile(pidFile, `${started.pid}\n`);
    const deadline = systemClock.monotonic() + startMs;
    while (!(await isUp())) {
      const isLate = systemClock.monotonic() > deadline;
      if (!isLate && (await this.pid())) {
        await systemClock.sleep(50);
        continue;
      }
      await this.stop(0);
      const said = (await readFile(logFile))
        .subarray(size)
        .toString()
        .trimEnd()
        .split("\n")
        .slice(-logLines)
        .join("\n");
      const what = isLate
        ? `is not ready after ${startMs / 1000} s, and was ended`
        : "has ended as soon as it was started";
      throw new UserError(`The ${name} ${what}. ${logFile} says:\n${said}`);
    }
  }

  /** Asks it to end, and ends it by force after `patienceMs`. @returns whether it was running */
  async stop(patienceMs: number): Promise<boolean> {
    const pid = await this.pid();
    if (pid) {
      const deadline = systemClock.monotonic() + patienceMs;
      signal(pid, "SIGTERM");
      while ((await this.pid()) && systemClock.monotonic() < deadline) await systemClock.sleep(25);
      if (await this.pid()) signal(pid, "SIGKILL");
      while (await this.pid()) await systemClock.sleep(5);
    }
    await rm(this.#options.pidFile, { force: true });
    return pid !== undefined;
  }
}

const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended by itself.
  }
};
