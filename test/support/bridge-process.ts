import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "./poll.ts";

const main = join(import.meta.dirname, "../../src/main.ts");
const compiled = join(import.meta.dirname, "../../node_modules/.cache/compiled");
const options = ["--max-semi-space-size=4", "--import", join(import.meta.dirname, "end-with-stdin.ts")];

const memory = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "131072" };

/** The bridge as an operator runs it, a process of its own: it can be killed at any moment and started again. */
export class BridgeProcess {
  /** Log of all its lives together. */
  log = "";
  /** Runs before each of its lives. */
  beforeStart: () => Promise<void> = async () => {};
  readonly #env: Readonly<Record<string, string>>;
  readonly #configFile: string;
  readonly url: string;
  #child: ChildProcess | undefined;

  constructor(configFile: string, url: string, env: Readonly<Record<string, string>> = {}) {
    this.#env = env;
    this.#configFile = configFile;
    this.url = url;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  get isRunning(): boolean {
    return this.#child !== undefined && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Resolves when it answers people, or (`isReady: false`) when its port answers. */
  async start({ isReady = true } = {}): Promise<void> {
    await this.beforeStart();
    const child = spawn(process.execPath, [...options, main, "start", "--config", this.#configFile], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, NODE_COMPILE_CACHE: compiled, ...memory, ...this.#env },
    });
    this.#child = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (text) => {
        this.log += text;
        appendFileSync(`${this.#configFile}.log`, text);
      });
    }
    const ended = once(child, "exit").then(([code]) => {
      throw new Error(`the bridge ended with ${code}:\n${this.log.slice(-3_000)}`);
    });
    ended.catch(() => {});
    const look = async () => {
      const { ok } = await fetch(`${this.url}/health/${isReady ? "ready" : "live"}`);
      return ok;
    };
    await Promise.race([ended, eventually(look, { within: 40_000, what: "the bridge to be ready" })]);
  }

  /** `kill -9`. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** SIGTERM: it finishes what it can. Resolves with its exit code. */
  async stop(): Promise<number | null> {
    return this.#end("SIGTERM");
  }

  /** Freezes it, as a machine that sleeps; `SIGCONT` lets it go on. */
  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (!child || !this.isRunning) return child?.exitCode ?? null;
    const ended = once(child, "exit");
    child.kill(signal);
    await ended;
    return child.exitCode;
  }
}
