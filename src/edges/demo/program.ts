import { readFile } from "node:fs/promises";
import { execa } from "execa";
import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";

const answerMs = 10_000;
const progressMs = 5_000;

/**
 * Runs a program that fetches something. It may take its time, but a line that matches `answered` has to come within
 * 10 s: a program that waits for a server which is out of reach is ended.
 * @param onProgress hears such a line every 5 s at most
 * @throws UserError with what the program said
 */
export const runFetching = async (
  [file, ...args]: readonly [string, ...string[]],
  {
    what,
    answered,
    onProgress,
  }: { readonly what: string; readonly answered: RegExp; readonly onProgress: (text: string) => void },
): Promise<void> => {
  const program = execa(file, args, {
    all: true,
    stdin: "ignore",
    reject: false,
    killDescendants: true,
    env: { PYTHONUNBUFFERED: "1", LC_ALL: "C.UTF-8" },
  });
  const patience = new AbortController();
  let hasAnswered = false;
  let saidAt = systemClock.monotonic();
  systemClock.sleep(answerMs, patience.signal).then(
    () => hasAnswered || program.kill(),
    () => {},
  );
  let firstError = "";
  let lastLine = "";
  for await (const line of program.iterable({ from: "all" })) {
    if (line.trim() !== "") lastLine = line.trim();
    if (/error/i.test(line)) firstError ||= line.trim();
    if (!answered.test(line)) continue;
    hasAnswered = true;
    if (systemClock.monotonic() - saidAt < progressMs) continue;
    saidAt = systemClock.monotonic();
    onProgress(line.trim());
  }
  const result = await program;
  patience.abort();
  if (!result.failed) return;
  const reason = firstError || lastLine || result.shortMessage || "no reason given";
  throw new UserError(
    hasAnswered || !result.isTerminated ? `${what}: ${reason}` : `${what}: no answer within ${answerMs / 1000} s`,
  );
};

/**
 * Runs a program that needs nothing from outside, and ends it after `withinMs`.
 * @returns what it wrote
 * @throws UserError with what it said, or that it is not installed
 */
export const run = async (file: string, args: readonly string[], withinMs = 5_000): Promise<string> => {
  const result = await execa(file, args, { stdin: "ignore", reject: false, timeout: withinMs });
  if (!result.failed) return result.stdout;
  if (result.code === "ENOENT") throw new UserError(`${file} is not installed`);
  if (result.timedOut) throw new UserError(`${file} does not answer`);
  throw new UserError(result.stderr.trim().split("\n").at(-1) || `${file} ${args[0] ?? ""} failed`);
};

/** With spaces between its parts. Empty when there is no such process, or when it has ended and is only waited for. */
export const commandLine = async (pid: number): Promise<string> =>
  (
    await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() =>
      run("ps", ["-ww", "-o", "args=", "-p", String(pid)]).catch(() => ""),
    )
  ).replaceAll("\0", " ");
