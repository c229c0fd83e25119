import type { Computation, Computed } from "./evaluate.ts";
import { InterpreterThread } from "./thread.ts";

/** One person less than this may compute without end, and nobody else waits for them. */
const threadsMost = 3;

/** Waits for its turn. */
interface Waiting {
  readonly people: readonly string[];
  readonly begin: (thread: InterpreterThread) => void;
}

/** Runs computations in a few threads, of each person one after the other. */
export class Interpreter {
  readonly #free: InterpreterThread[] = Array.from({ length: threadsMost }, () => new InterpreterThread());
  /** In the order in which they came. */
  #waiting: Waiting[] = [];
  /** People for whom something is computed now. */
  readonly #busy = new Set<string>();

  /**
   * Rejects with the signal's reason when that is aborted. See `evaluate`.
   * @param people those for whom it is computed
   */
  async run(computation: Computation, people: readonly string[], signal: AbortSignal): Promise<Computed> {
    const thread = await this.#turnOf(people, signal);
    try {
      return await thread.compute(computation, signal);
    } finally {
      this.#free.unshift(thread);
      for (const person of people) this.#busy.delete(person);
      this.#next();
    }
  }

  async #turnOf(people: readonly string[], signal: AbortSignal): Promise<InterpreterThread> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<InterpreterThread>();
    const waiting = { people, begin: resolve };
    const leave = (): void => {
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave);
    this.#waiting.push(waiting);
    this.#next();
    try {
      return await promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  /** Begins whatever can begin. */
  #next(): void {
    for (const waiting of this.#waiting) {
      if (waiting.people.some((person) => this.#busy.has(person))) continue;
      const thread = this.#free.shift();
      if (!thread) return;
      this.#waiting = this.#waiting.filter((other) => other !== waiting);
      for (const person of waiting.people) this.#busy.add(person);
      waiting.begin(thread);
    }
  }
}
