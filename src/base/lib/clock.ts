import { setImmediate, setTimeout as sleep } from "node:timers/promises";

/** The only source of time. Leases are judged by the database's clock, never by this one. */
export interface Clock {
  /** Wall clock. */
  now(): Date;
  /** Milliseconds that only ever rise: for measuring, not for dates. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    try {
      await sleep(ms, undefined, signal ? { signal } : undefined);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    }
  },
};

/** Milliseconds for which this thread has had a processor: what else the machine does takes nothing of it. */
export const threadCpu = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** Calls once after `ms` as below; a process that has nothing else to do ends before. */
export const afterIdling = (ms: number, call: () => void): (() => void) => {
  const timer = setTimeout(call, ms).unref();
  return () => clearTimeout(timer);
};

/** Calls once after `ms`, unless the function that it returns is called before: cheap enough for every statement. */
export const callAfter = (ms: number, call: () => void): (() => void) => {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
};

/** Lets go first whatever else waits for this thread: called now and then by work that takes long. */
export const giveWay = (): Promise<void> => setImmediate();
