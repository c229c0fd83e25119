import { Worker } from "node:worker_threads";
import { after, afterIdling } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Computation, Computed } from "./evaluate.ts";

/**
 * Time after which a program is ended from outside, where it cannot be interrupted from inside. A busy machine takes
 * long to start it.
 */
const patienceMs = 6_000;
/** A thread that has nothing to do goes, and with it the memory that WebAssembly never gives back. */
const idleMs = 60_000;

const failed = (error: string): Computed => ({ printed: "", value: undefined, error });

/** A thread for computations, one at a time; it is started when it is needed. */
export class InterpreterThread {
  #worker: Worker | undefined;
  #keep = (): void => {};

  /** Rejects with the signal's reason when that is aborted. See `evaluate`. */
  async compute(computation: Computation, signal: AbortSignal): Promise<Computed> {
    signal.throwIfAborted();
    this.#keep();
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
      else this.#keep = afterIdling(idleMs, () => this.#end());
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
