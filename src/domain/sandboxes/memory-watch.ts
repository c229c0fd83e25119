import { RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { secret } from "../../base/lib/ids.ts";
import type { CommandOutcome } from "../tables/sandbox-commands.ts";
import type { RunningSandbox } from "./sandbox.ts";

const forgetAttempts = 10;
const killed = 9;
/** Exit code of a shell whose program was killed. */
const shellKilled = 128 + killed;
/** Prints how many processes were killed for memory; which file has it depends on the machine. */
const counter =
  "cat /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events 2>/dev/null | sed -n 's/^oom_kill //p'";

/** Tells commands that were killed since memory ran out from others that were killed. */
export class MemoryWatch {
  /** Processes that were killed for memory so far, by the boot of the sandbox. */
  readonly #known = new Map<string, number>();
  readonly #clock: Pick<Clock, "sleep">;

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /**
   * Begins to watch for one command.
   * @param wasBegun it may have begun long ago: whatever was killed may have been its
   */
  before(boot: string, wasBegun: boolean) {
    const before = wasBegun ? 0 : (this.#known.get(boot) ?? 0);
    return {
      isToBlame: async (sandbox: RunningSandbox, { code, signal }: CommandOutcome): Promise<boolean> => {
        if (signal !== killed && code !== shellKilled) return false;
        const count = await this.#countIn(sandbox).catch(() => 0);
        this.#known.set(boot, Math.max(count, this.#known.get(boot) ?? 0));
        return count > before;
      },
    };
  }

  async #countIn({ boot, runner }: RunningSandbox): Promise<number> {
    const id = `memory-${secret(8)}`;
    let text = "";
    for await (const { data, stream } of runner.run({ id, boot, argv: ["/bin/sh", "-c", counter], seconds: 5 }))
      if (stream === "stdout") text = (text + data.toString()).slice(0, 100);
    for (let attempt = 1; attempt <= forgetAttempts; attempt++) {
      const isForgotten = await runner.forget(id).then(
        () => true,
        (error: unknown) => !(error instanceof RunnerRefused && error.code === "running"),
      );
      if (isForgotten) break;
      // It has ended, and is gone in a moment.
      await this.#clock.sleep(attempt * 10);
    }
    return Number(text.trim()) || 0;
  }
}
