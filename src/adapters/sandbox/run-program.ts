import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Runner } from "./runner.ts";
import { LinkLost, RunnerRefused } from "./runner-link.ts";

/** A computer that is there now. */
export interface OpenSandbox {
  readonly runner: Runner;
  /** Its present run. */
  readonly boot: string;
}

/** A program of ours that runs inside of a sandbox, and ends by itself. It may be lied to there: its output is believed in nothing. */
export interface ProgramOrder {
  readonly argv: readonly [string, ...string[]];
  readonly input?: Buffer | undefined;
  readonly seconds: number;
  /** Bytes of output; one that has more is ended. */
  readonly outputMost: number;
}

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: Buffer;
  /** The last of it. */
  readonly stderr: string;
}

const saidMost = 4_000;

/** Runs a program to its end. Throws a `UserError` where it had no end, or the sandbox has no place for it. */
export async function runProgram(sandbox: OpenSandbox, order: ProgramOrder): Promise<ProgramResult> {
  const { runner, boot } = sandbox;
  const { argv, input, seconds, outputMost } = order;
  const id = `own-${secret(8)}`;
  try {
    await runner.start({ id, boot, argv, seconds, takesInput: input !== undefined, isWhole: true });
  } catch (error) {
    throw startError(error);
  }
  const sending = input === undefined ? undefined : send(runner, id, input);
  try {
    const stdout: Buffer[] = [];
    let size = 0;
    let stderr = "";
    const output = runner.follow({ id, boot });
    for (;;) {
      const { value, done } = await output.next();
      if (done) {
        if (value.reason !== "ended") throw new UserError(endedWords[value.reason]);
        return { code: value.code, stdout: Buffer.concat(stdout), stderr };
      }
      if (value.stream === "stderr") {
        stderr = `${stderr}${value.data}`.slice(-saidMost);
        continue;
      }
      size += value.data.length;
      if (size > outputMost) throw new UserError("The computer answered with more than was asked for: try again.");
      stdout.push(value.data);
    }
  } finally {
    await sending;
    void clear(runner, id);
  }
}

const endedWords = {
  timeout: "The computer did not get this done in time: something there keeps it busy. Look with run_command `ps aux`.",
  killed: "Something in the computer ended this before it was done: try again.",
  lost: "Something in the computer ended this before it was done: try again.",
} as const;

/** Names what people can do about a runner that does not start a command. */
export function startError(error: unknown): unknown {
  if (error instanceof LinkLost) return new UserError("The computer does not answer: try again, or reset it.");
  if (!(error instanceof RunnerRefused)) return error;
  if (error.code === "full") return new UserError("The computer runs as many commands as it can: stop some of them.");
  if (error.code === "processes")
    return new UserError(
      "The computer has no processes left: end what runs with !stop N (!sandbox lists the numbers), or reset it.",
    );
  if (error.code === "other-boot") return new UserError("The computer was restarted in this moment: try again.");
  if (error.code === "system")
    return new UserError(`The computer has no room for more: ${error.message}. End something there.`);
  return error;
}

/** Sends the input as far as the program reads it. */
async function send(runner: Runner, id: string, input: Buffer): Promise<void> {
  try {
    await runner.write(id, 0, input);
    await runner.finish(id);
  } catch {
    // The program has ended; its output says why.
  }
}

/** Frees what programs have left whose starter is gone. */
export async function forgetEnded(runner: Runner): Promise<void> {
  for (const { id, end, isLeft } of await runner.list())
    if (id.startsWith("own-") && end !== null && !isLeft) await runner.forget(id).catch(() => {});
}

/** Frees the output. A supervisor needs a moment to end behind its command. */
export async function clear(runner: Runner, id: string): Promise<void> {
  try {
    await runner.kill(id);
    for (let attempt = 0; attempt < 100; attempt++) {
      try {
        return await runner.forget(id);
      } catch (error) {
        if (!(error instanceof RunnerRefused) || error.code !== "running") return;
      }
      await systemClock.sleep(20);
    }
  } catch {
    // The sandbox is gone, and with it all that it kept.
  }
}
