import type { Worker } from "node:worker_threads";
import { systemClock } from "./clock.ts";

/** Interval of looks at a thread's processor time: what it runs cannot be interrupted from inside. */
const lookEveryMs = 200;

/** Resolves when the thread has had a processor for so many seconds from now on, or the signal is aborted. */
export async function untilUsed(worker: Worker, seconds: number, over: AbortSignal): Promise<void> {
  let begun: number | undefined;
  while (!over.aborted) {
    // A thread that is not there yet has used nothing.
    const usage = await worker.cpuUsage().catch(() => undefined);
    const used = usage && (usage.user + usage.system) / 1_000_000;
    begun ??= used;
    if (used !== undefined && begun !== undefined && used - begun > seconds) return;
    await systemClock.sleep(lookEveryMs, over).catch(() => {});
  }
}
