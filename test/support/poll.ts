import { setTimeout as sleep } from "node:timers/promises";

export interface Patience {
  /** Milliseconds. Default: 15 s. */
  readonly within?: number;
  /** Name of the awaited thing, for the message of the error. */
  readonly what: string;
}

/**
 * Calls `look` until it gives something (neither undefined, null nor false) without throwing, and returns that.
 * @throws Error after the deadline, with what was waited for and what was seen last
 */
export async function eventually<Value>(
  look: () => Value | Promise<Value>,
  { within = 15_000, what }: Patience,
): Promise<NonNullable<Exclude<Awaited<Value>, false>>> {
  const deadline = performance.now() + within;
  for (let pause = 5; ; pause = Math.min(pause * 2, 100)) {
    let last: unknown;
    try {
      const seen = await look();
      if (seen !== undefined && seen !== null && seen !== false)
        return seen as NonNullable<Exclude<Awaited<Value>, false>>;
      last = `${seen}`;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline)
      throw new Error(`waited ${within} ms for ${what}; last: ${last}`, { cause: last });
    await sleep(pause);
  }
}
