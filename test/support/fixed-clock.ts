import type { Clock } from "../../src/base/lib/clock.ts";

export interface FixedClock extends Clock {
  /** Every sleep that was asked for, in milliseconds, also those that were aborted. */
  readonly sleeps: readonly number[];
  /** Moves time on, and wakes whoever's sleep is over. */
  advance(ms: number): void;
}

interface Sleeper {
  readonly until: number;
  wake(): void;
}

/**
 * A clock that only moves when told to, from `start` on. Sleeps shorter than `instantBelow` pass at once and move it;
 * the others last until `advance` has gone far enough. By default all pass at once.
 */
export const fixedClock = ({
  start = new Date("2026-01-01T12:00:00Z"),
  instantBelow = Number.POSITIVE_INFINITY,
} = {}): FixedClock => {
  let elapsed = 0;
  const sleeps: number[] = [];
  const sleepers = new Set<Sleeper>();
  const advance = (ms: number) => {
    elapsed += ms;
    for (const sleeper of sleepers) if (sleeper.until <= elapsed) sleeper.wake();
  };
  return {
    sleeps,
    advance,
    now: () => new Date(start.getTime() + elapsed),
    monotonic: () => elapsed,
    sleep: async (ms, signal) => {
      sleeps.push(ms);
      signal?.throwIfAborted();
      if (ms < instantBelow) return advance(ms);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const sleeper = { until: elapsed + ms, wake: resolve };
      const abort = () => reject(signal?.reason);
      sleepers.add(sleeper);
      signal?.addEventListener("abort", abort);
      try {
        await promise;
      } finally {
        sleepers.delete(sleeper);
        signal?.removeEventListener("abort", abort);
      }
    },
  };
};
