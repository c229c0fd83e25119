import { startError } from "../../adapters/sandbox/run-program.ts";
import { isOtherBoot, type Runner } from "../../adapters/sandbox/runner.ts";
import { LinkLost, RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { CommandEnd } from "../../adapters/sandbox/runner-words.ts";
import type { HostTraffic } from "../../adapters/sandbox/traffic.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, ShuttingDown, UserError } from "../../base/lib/errors.ts";
import type { Conversation, RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { CommandDraft, CommandOutcome, CommandRow, SandboxCommandTable } from "../tables/sandbox-commands.ts";
import type { SandboxTable } from "../tables/sandboxes.ts";
import { keepOutput, outputFile } from "./keep-output.ts";
import { MemoryWatch } from "./memory-watch.ts";
import type { RunningSandbox } from "./sandbox.ts";
import type { Sandboxes } from "./sandboxes.ts";
import { OutputCollector } from "./shown-output.ts";

/** The runner ends a command that is late; if it has not done so by then, its sandbox is stopped. */
const graceSeconds = 5;
/** Processes that a command line needs: what keeps its output, the shell, and a program. */
const neededProcesses = 3;
/** While a command runs, its sandbox counts as used. */
const touchMs = 15_000;

interface CommandJournalParts {
  readonly sandboxes: Sandboxes;
  readonly table: SandboxCommandTable;
  readonly sandboxTable: Pick<SandboxTable, "sources">;
  readonly clock: Clock;
  readonly log: Log;
}

/** A command line of Bash, to be run in the conversation's sandbox. */
export interface SandboxCall extends Omit<CommandDraft, "boot"> {
  /** Time limit; null: none. */
  readonly seconds: number | null;
}

export interface CommandWait {
  /** Aborted where the command is to end; with `ShuttingDown` it goes on, and another process waits for it. */
  readonly signal: AbortSignal;
  /** Throws where a command may not begin. One that has begun goes on. */
  readonly mayBegin?: (() => Promise<void>) | undefined;
  /** Hears the output as it grows, and what it may be made from. */
  readonly onOutput?: ((output: OutputCollector, sources: readonly RoomId[]) => void) | undefined;
}

/** A command, and how it has ended. */
export interface SandboxResult {
  readonly number: number;
  /** Undefined: it runs in the background. */
  readonly outcome: CommandOutcome | undefined;
  /** Hosts with which its sandbox has spoken meanwhile, and those to which it was not let. */
  readonly network?: readonly HostTraffic[] | undefined;
  /** Sources of all that its sandbox may hold. */
  readonly sources: readonly RoomId[];
}

/**
 * Runs commands in sandboxes, each once. A command is written down, with the run of the sandbox in which it is to start,
 * before it is sent. Whoever comes with the same key later goes on with it: in the same run it is attached to, or sent if it
 * never was; in another run it has ended, and how is not known.
 */
export class CommandJournal {
  readonly #parts: CommandJournalParts;
  readonly #memory: MemoryWatch;

  constructor(parts: CommandJournalParts) {
    this.#parts = parts;
    this.#memory = new MemoryWatch(parts.clock);
  }

  /** Runs a command, or goes on with it. Rejects with the signal's reason if that is aborted. */
  async run(call: SandboxCall, waiting: CommandWait): Promise<SandboxResult> {
    const { sandboxes, table } = this.#parts;
    waiting.signal.throwIfAborted();
    const before = await table.find(call.key);
    if (before?.outcome) return this.#resultOf(before, before.outcome);
    if (!before) await waiting.mayBegin?.();
    const sandbox = await sandboxes.use(call);
    const row = before ?? (await table.begin({ ...call, boot: sandbox.boot }));
    if (row.outcome) return this.#resultOf(row, row.outcome);
    if (row.boot !== sandbox.boot) return this.#finish(row, { reason: "lost" });
    const traffic = sandboxes.waysOut.trafficOf(sandbox.runner);
    const counted = traffic?.counts() ?? [];
    const memory = this.#memory.before(sandbox.boot, before !== undefined);
    try {
      await this.#start(call, row, sandbox.runner);
      if (call.isBackground) return await this.#resultOf(row, undefined);
      const outcome = await this.#follow(call, row, { sandbox, waiting });
      const isMemory = outcome.reason === "exit" && (await memory.isToBlame(sandbox, outcome));
      const result = await this.#finish(row, isMemory ? { ...outcome, reason: "memory" } : outcome);
      const network = traffic?.since(counted) ?? [];
      if (network.length > 0) this.#parts.log.info({ command: call.key, network }, "a command has used the network");
      return { ...result, network };
    } catch (error) {
      waiting.signal.throwIfAborted();
      if (!(isOtherBoot(error) || error instanceof RunnerRefused || error instanceof LinkLost)) throw error;
      // Another process may have taken its result; else it is gone with its sandbox.
      this.#parts.log.info(`command ${row.number} in a sandbox is lost: ${messageOf(error)}`);
      return this.#finish(row, { reason: "lost" });
    } finally {
      void this.tidy(call, sandbox.runner).catch(() => {});
    }
  }

  /** Ends a command, and all that it has left behind. Returns false if nothing of it runs. */
  async end(conversation: Conversation, { boot, key }: CommandRow): Promise<boolean> {
    const sandbox = await this.#parts.sandboxes.running(conversation);
    if (sandbox?.boot !== boot) return false;
    const kept = (await sandbox.runner.list()).find(({ id }) => id === key);
    if (!kept?.isLeft) return false;
    await sandbox.runner.kill(key);
    return true;
  }

  /** Lists the conversation's commands that run, or have left something running, with what the runner knows of them. */
  async underWay(conversation: Conversation): Promise<CommandRow[]> {
    const sandbox = await this.#parts.sandboxes.running(conversation);
    if (!sandbox) return [];
    const left = (await sandbox.runner.list()).filter(({ isLeft }) => isLeft).map(({ id }) => id);
    return this.#parts.table.ofConversation(conversation, left);
  }

  /** True if a command that was given to the background still runs. Those that have ended are noted. */
  async isBusy(conversation: Conversation): Promise<boolean> {
    const sandbox = await this.#parts.sandboxes.running(conversation);
    if (!sandbox) return false;
    await this.tidy(conversation, sandbox.runner);
    return (await this.underWay(conversation)).some(({ isBackground, outcome }) => isBackground && !outcome);
  }

  /** Ends commands whose operations have ended without them: nobody takes their result. */
  async endDeserted(): Promise<void> {
    for (const row of await this.#parts.table.findDeserted()) {
      await this.end(row, row).catch(() => false);
      await this.#parts.table.finish(row.key, { reason: "stopped" });
    }
  }

  /** Has the runner forget the commands that are over, and whose end is stored. */
  async tidy(conversation: Conversation, runner: Runner): Promise<void> {
    const over = (await runner.list()).filter(({ end, isLeft }) => end !== null && !isLeft);
    const rows = await this.#parts.table.ofConversation(
      conversation,
      over.map(({ id }) => id),
    );
    for (const { isBackground, key, outcome } of rows) {
      const end = over.find(({ id }) => id === key)?.end;
      if (!outcome && !(isBackground && end)) continue;
      if (!outcome && end) await this.#parts.table.finish(key, outcomeOf(end));
      await runner.forget(key);
    }
  }

  /** Sends a command, unless the runner knows it. */
  async #start(call: SandboxCall, { boot, isBackground, key, number }: CommandRow, runner: Runner): Promise<void> {
    const argv = keepOutput(outputFile(number, isBackground), call.command);
    const env = await this.#parts.sandboxes.waysOut.environmentOf(call.agent);
    const send = () => runner.start({ id: key, boot, argv, seconds: call.seconds, env, processes: neededProcesses });
    try {
      await send().catch(async (error: unknown) => {
        if (!hasNotBegun(error)) throw error;
        await this.tidy(call, runner);
        await send();
      });
    } catch (error) {
      if (!hasNotBegun(error)) throw error;
      await this.#parts.table.withdraw(key);
      if (error.code === "processes") throw startError(error);
      throw new UserError(`${error.message}. End some that run in the background, or reset the computer.`);
    }
  }

  /** Reads the output of a command until its end, or until it is late. */
  async #follow(
    call: SandboxCall,
    { boot, key }: CommandRow,
    { sandbox: { runner }, waiting }: { readonly sandbox: RunningSandbox; readonly waiting: CommandWait },
  ): Promise<CommandOutcome> {
    const { log, sandboxes } = this.#parts;
    const output = new OutputCollector();
    const sources = waiting.onOutput ? await this.#parts.sandboxTable.sources(call) : [];
    const over = new AbortController();
    const collect = async (): Promise<CommandOutcome> => {
      const pieces = runner.follow({ id: key, boot });
      for (;;) {
        const { value, done } = await pieces.next();
        if (done) return { ...outcomeOf(value), stdout: output.stdout, stderr: output.stderr };
        output.add(value);
        waiting.onOutput?.(output, sources);
      }
    };
    const collected = collect();
    collected.catch(() => {});
    const late = this.#untilLate(call.seconds, over.signal);
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {});
    const abort = () => aborted.reject(waiting.signal.reason);
    waiting.signal.addEventListener("abort", abort, { once: true });
    void this.#keepInUse(call, over.signal);
    try {
      const first = await Promise.race([collected, late, aborted.promise]);
      if (first !== "late") return first;
      log.warn(`command ${key} did not end at its time limit: its sandbox is stopped`);
      const outcome = { reason: "timeout", stdout: output.stdout, stderr: output.stderr } as const;
      await this.#parts.table.finish(key, outcome);
      await sandboxes.restart(call);
      return outcome;
    } catch (error) {
      if (waiting.signal.aborted && !(waiting.signal.reason instanceof ShuttingDown)) {
        await runner.kill(key).catch(() => {});
        await this.#parts.table.finish(key, { reason: "stopped" });
      }
      throw error;
    } finally {
      waiting.signal.removeEventListener("abort", abort);
      over.abort();
    }
  }

  async #untilLate(seconds: number | null, signal: AbortSignal): Promise<"late"> {
    if (seconds === null) return new Promise(() => {});
    await this.#parts.clock.sleep((seconds + graceSeconds) * 1_000, signal).catch(() => new Promise(() => {}));
    return "late";
  }

  async #keepInUse(conversation: Conversation, signal: AbortSignal): Promise<void> {
    try {
      for (;;) {
        await this.#parts.clock.sleep(touchMs, signal);
        await this.#parts.sandboxes.touch(conversation).catch(() => {});
      }
    } catch {
      // It is over.
    }
  }

  async #finish(row: CommandRow, outcome: CommandOutcome): Promise<SandboxResult> {
    return this.#resultOf(row, await this.#parts.table.finish(row.key, outcome));
  }

  async #resultOf(row: CommandRow, outcome: CommandOutcome | undefined): Promise<SandboxResult> {
    return { number: row.number, outcome, sources: await this.#parts.sandboxTable.sources(row) };
  }
}

const reasons = { ended: "exit", timeout: "timeout", killed: "stopped", lost: "lost" } as const;

const outcomeOf = ({ code, reason, signal, size }: CommandEnd): CommandOutcome => ({
  reason: reasons[reason],
  // Where it may matter to the file that keeps it.
  ...(size > 1 << 20 && { bytes: size }),
  ...(code !== null && { code }),
  ...(signal !== null && { signal }),
});

/** The runner does not know the command, and could not begin it. */
const hasNotBegun = (error: unknown): error is RunnerRefused =>
  error instanceof RunnerRefused && ["full", "processes", "system", "bad-request"].includes(error.code);
