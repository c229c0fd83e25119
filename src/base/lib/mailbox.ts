import { InTurn } from "./in-turn.ts";

/**
 * One job at a time per key, in the order of posting; keys run side by side.
 * A job that throws does not stop those behind it: `onError` hears of it.
 */
export class Mailbox<Key> {
  readonly #jobs = new InTurn<Key>();
  readonly #onError: (key: Key, error: unknown) => void;

  constructor(onError: (key: Key, error: unknown) => void) {
    this.#onError = onError;
  }

  post(key: Key, job: () => Promise<void>): void {
    void this.#jobs.run([key], async () => {
      try {
        await job();
      } catch (error) {
        this.#onError(key, error);
      }
    });
  }

  /** True if a job of the key runs or waits. */
  isBusy(key: Key): boolean {
    return this.#jobs.isBusy(key);
  }

  /** Resolves when everything posted so far has run. */
  idle(): Promise<void> {
    return this.#jobs.idle();
  }
}
