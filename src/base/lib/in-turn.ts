/** Jobs that have a key in common run one after another, in the order of the calls; others run side by side. */
export class InTurn<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

  /** True if a job with this key runs or waits. */
  isBusy(key: Key): boolean {
    return this.#last.has(key);
  }

  /** Resolves when no job runs or waits. */
  async idle(): Promise<void> {
    while (this.#last.size > 0) await Promise.allSettled(this.#last.values());
  }

  /** Resolves or rejects as the job does, which begins when those before it have ended, however they did. */
  async run<Result>(keys: readonly Key[], job: () => Promise<Result>): Promise<Result> {
    const before = keys.flatMap((key) => this.#last.get(key) ?? []);
    const result = before.length === 0 ? job() : Promise.allSettled(before).then(job);
    for (const key of keys) this.#last.set(key, result);
    try {
      return await result;
    } finally {
      for (const key of keys) if (this.#last.get(key) === result) this.#last.delete(key);
    }
  }
}
