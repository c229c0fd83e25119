/** Jobs that have a key in common run one after another, in the order of the calls; others run side by side. */
export class InTurn<Key> {
  readonly #last = new Map<Key, Promise<unknown>>();

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
