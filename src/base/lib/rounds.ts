import type { Clock } from "./clock.ts";

/** Rounds of work beside everything else, one after the other, with a rest between them that a nudge cuts short. */
export class Rounds {
  readonly #clock: Pick<Clock, "sleep">;
  readonly #stopped = new AbortController();
  #nudged = Promise.withResolvers<void>();
  #working: Promise<void> = Promise.resolve();

  constructor(clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
  }

  /** Aborted when no other round is to begin. */
  get signal(): AbortSignal {
    return this.#stopped.signal;
  }

  /** There may be something to do; in the middle of a round it is worth another one. Costs nothing. */
  nudge(): void {
    this.#nudged.resolve();
  }

  /** @param round must not throw; resolves with the milliseconds to rest then, 0 where there is more to do */
  start(round: () => Promise<number>): void {
    this.#working = this.#work(round);
  }

  /** Resolves after the round in hand. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.nudge();
    await this.#working;
  }

  async #work(round: () => Promise<number>): Promise<void> {
    while (!this.signal.aborted) {
      this.#nudged = Promise.withResolvers();
      const rest = await round();
      if (rest === 0) continue;
      const over = new AbortController();
      const sleeping = this.#clock.sleep(rest, AbortSignal.any([over.signal, this.signal])).catch(() => {});
      await Promise.race([sleeping, this.#nudged.promise]);
      over.abort();
    }
  }
}
