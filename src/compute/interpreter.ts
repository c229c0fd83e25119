import { Worker } from "node:worker_threads";
import { after, afterIdling } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Computation, Computed } from "./evaluate.ts";

/** What cannot be interrupted from inside is ended from outside after so long; a busy machine takes long to start it. */
const patienceMs = 6_000;
/** A thread that has nothing to do goes, and with it the memory that WebAssembly never gives back. */
const idleMs = 60_000;

const failed = (error: string): Computed => ({ printed: "", value: undefined, error });

/** Runs computations one after the other in a thread of its own, which is started when it is needed. */
export class Interpreter {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #worker: Worker | undefined;
  #keep = (): void => {};

  /** Rejects with the signal's reason when that is aborted. See `evaluate`. */
  async run(computation: Computation, signal: AbortSignal): Promise<Computed> {
    this.#waiting += 1;
    const result = this.#last.then(() => this.#compute(computation, signal));
    this.#last = result.catch(() => {});
    try {
      return await result;
    } finally {
      this.#waiting -= 1;
      this.#keep();
      if (this.#waiting === 0) this.#keep = afterIdling(idleMs, () => this.#end());
    }
  }

  async #compute(computation: Computation, signal: AbortSignal): Promise<Computed> {
    signal.throwIfAborted();
    this.#worker ??= startWorker();
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<Computed>();
    const giveUp = (): void => reject(signal.reason);
    const late = () => resolve(failed(`it was stopped after ${patienceMs / 1_000} seconds`));
    const forget = after(patienceMs, late);
    const die = (error: unknown): void => resolve(failed(`the interpreter gave up: ${messageOf(error)}`));
    let answered = false;
    const answer = (computed: Computed): void => {
      answered = true;
      resolve(computed);
    };
    signal.addEventListener("abort", giveUp);
    worker.on("message", answer);
    worker.on("error", die);
    worker.postMessage(computation);
    try {
      return await promise;
    } finally {
      forget();
      signal.removeEventListener("abort", giveUp);
      worker.off("message", answer);
      worker.off("error", die);
      if (!answered) this.#end();
    }
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }
}

/** Does not keep the process alive. */
function startWorker(): Worker {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), {
    resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 64 },
  });
  worker.unref();
  return worker;
}
