import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { execa } from "execa";
import { ProcessStream } from "./process-stream.ts";

export interface PodmanAnswer {
  /** Exit code; undefined where a signal ended it. */
  readonly code: number | undefined;
  readonly out: string;
  /** Its own words, or why it could not be started. */
  readonly says: string;
}

/** Parts of how a process ended that are of interest. */
type Ended = {
  readonly [Key in "exitCode" | "stdout" | "stderr" | "code" | "timedOut" | "failed" | "shortMessage"]?: unknown;
};

const answerMs = 120_000;
const installRemedy = "Install Podman 4.3 or newer (Debian: apt-get install podman), or set sandbox.podman to its path";
const reachRemedy = "Start Podman where it runs: podman machine start, or its service on the machine of the connection";

/** Podman's command line, of this machine or of one of its connections. */
export class Podman {
  readonly #program: string;
  readonly #before: readonly string[];

  constructor(program: string, connection?: string) {
    this.#program = program;
    this.#before = connection === undefined ? [] : ["--remote", "--connection", connection];
  }

  /** Never throws: Podman may be missing, or refuse. */
  async run(args: readonly string[], withinMs = answerMs): Promise<PodmanAnswer> {
    const ended = await execa(this.#program, [...this.#before, ...args], {
      reject: false,
      stdin: "ignore",
      timeout: withinMs,
      maxBuffer: 10_000_000,
      cwd: folder(),
    });
    return this.#answerOf(ended, withinMs);
  }

  /** Standard input and output of a call, for as long as the stream is open. */
  stream(args: readonly string[]): Duplex {
    const child = execa(this.#program, [...this.#before, ...args], {
      buffer: { stdout: false, stderr: true },
      maxBuffer: 10_000,
      reject: false,
      stdin: "pipe",
      cwd: folder(),
    });
    const ended = child.then((result) => {
      const { code, says } = this.#answerOf(result);
      return code === 0 ? undefined : says || "podman has ended without a word";
    });
    return new ProcessStream({ stdin: child.stdin, stdout: child.stdout, ended, kill: () => child.kill("SIGKILL") });
  }

  /** Gives each line of a call's output as it comes; returns how it ended. Has no time limit. */
  async *lines(args: readonly string[]): AsyncGenerator<string, PodmanAnswer> {
    const child = execa(this.#program, [...this.#before, ...args], { all: true, reject: false, stdin: "ignore" });
    for await (const line of child.iterable({ from: "all" })) yield line;
    return this.#answerOf(await child);
  }

  #answerOf(
    { exitCode, stdout, stderr, code, timedOut, failed, shortMessage }: Ended,
    withinMs = answerMs,
  ): PodmanAnswer {
    const textOf = (output: unknown): string => (typeof output === "string" ? output.trim() : "");
    const reason = timedOut ? `it did not answer within ${withinMs / 1_000} s` : textOf(shortMessage);
    const missing = `there is no program ${this.#program}`;
    const says = code === "ENOENT" ? missing : textOf(stderr).slice(-2_000) || reason;
    // It exits with 0 after a signal.
    const isCode = typeof exitCode === "number" && !(failed && exitCode === 0);
    return { code: isCode ? exitCode : undefined, out: textOf(stdout), says };
  }
}

/** Advice for an answer that is always the same trouble. */
export function remedyFor(says: string): string | undefined {
  if (/there is no program|ENOENT/.test(says)) return installRemedy;
  if (/[Cc]annot connect to Podman|unable to connect to Podman/.test(says)) return reachRemedy;
  return undefined;
}

/** Folder from which Podman is called: it may leave a file there when a sandbox runs out of memory. */
function folder(): string {
  const path = join(tmpdir(), "clevernet-podman");
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}
