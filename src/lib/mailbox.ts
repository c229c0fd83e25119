/**
 * One job at a time per key, in the order of posting; keys run side by side.
 * A job that throws does not stop those behind it: `onError` hears of it.
 */
export class Mailbox<Key> {
  readonly #tails = new Map<Key, Promise<void>>();
  readonly #onError: (key: Key, error: unknown) => void;

  constructor(onError: (key: Key, error: unknown) => void) {
    this.#onError = onError;
  }

  post(key: Key, job: () => Promise<void>): void {
    const tail = (this.#tails.get(key) ?? Promise.resolve())
      .then(job)
      .catch((error: unknown) => this.#onError(key, error))
      .then(() => {
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      });
    this.#tails.set(key, tail);
  }

  /** Whether a job of the key runs or waits. */
  isBusy(key: Key): boolean {
    return this.#tails.has(key);
  }

  /** Resolves when everything posted so far has run. */
  async idle(): Promise<void> {
    while (this.#tails.size > 0) await Promise.all(this.#tails.values());
  }
}
