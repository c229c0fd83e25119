import { Worker } from "node:worker_threads";
import { afterIdling, callAfter } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { untilUsed } from "../../base/lib/thread-time.ts";
import { type Computation, type Computed, secondsMost, tooLong } from "./evaluate.ts";

/** Time after which any program is ended, however little of a processor a busy machine had for it. */
const patienceMs = 40_000;
/** A thread that has nothing to do goes, and with it the memory that WebAssembly never gives back. */
const idleMs = 60_000;

const failureOf = (error: string): Computed => ({ printed: "", value: undefined, error });

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
    const forget = callAfter(patienceMs, () =>
      resolve(failureOf(`it was stopped after ${patienceMs / 1_000} seconds: this machine has no time for it`)),
    );
    const over = new AbortController();
    void untilUsed(worker, secondsMost, over.signal).then(() => resolve(failureOf(tooLong)));
    const die = (error: unknown): void => resolve(failureOf(`the interpreter gave up: ${messageOf(error)}`));
    let hasAnswered = false;
    const answer = (computed: Computed): void => {
      hasAnswered = true;
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
      over.abort();
      signal.removeEventListener("abort", giveUp);
      worker.off("message", answer);
      worker.off("error", die);
      if (!hasAnswered) this.#end();
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
