import { RetryError, ShuttingDown } from "../../base/lib/errors.ts";
import { Fenced } from "../../domain/tables/steps.ts";
import { Parked, SomebodyCame, Stopped } from "./interruption.ts";

/** Course of one piece of work among several that run at once. */
export interface Lane {
  /** Aborted with the turn, and when one of those before it has failed. */
  readonly signal: AbortSignal;
  /** Resolves once all before it are finished; rejects where that will never be. */
  readonly reached: Promise<void>;
}

/** Work on each item: all begin at once, and are finished one after the other. */
interface Work<Item, Begun> {
  readonly begin: (item: Item, lane: Lane) => Promise<Begun>;
  readonly finish: (item: Item, begun: Begun) => Promise<void>;
}

/**
 * Begins work on all items at once, and finishes each in the order of the items. The first in this order that fails ends
 * those behind it; once they have ended, what it threw is thrown.
 */
export async function sideBySide<Item, Begun>(
  items: readonly Item[],
  signal: AbortSignal,
  { begin, finish }: Work<Item, Begun>,
): Promise<void> {
  const failed = new AbortController();
  const lanes = items.map((item) => {
    const { promise: reached, resolve, reject } = Promise.withResolvers<void>();
    const begun = begin(item, { signal: AbortSignal.any([signal, failed.signal]), reached });
    // Their failures are met below, in order.
    reached.catch(() => {});
    begun.catch(() => {});
    return { item, begun, resolve, reject };
  });
  try {
    for (const { item, begun, resolve } of lanes) {
      resolve();
      await finish(item, await begun);
    }
  } catch (error) {
    const reason = isInterruption(error) ? error : new Stopped("a call beside it broke off");
    failed.abort(reason);
    for (const { reject } of lanes) reject(reason);
    await Promise.allSettled(lanes.map(({ begun }) => begun));
    throw error;
  }
}

const interruptions = [Fenced, Parked, RetryError, ShuttingDown, SomebodyCame, Stopped];
const isInterruption = (error: unknown): boolean => interruptions.some((kind) => error instanceof kind);
