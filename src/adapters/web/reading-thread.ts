import { Worker } from "node:worker_threads";
import { afterIdling, callAfter } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import { untilUsed } from "../../base/lib/thread-time.ts";
import type { ReadingJob, ReadText } from "./read-text.ts";

/** Processor time that a page may take before it is read the quick way. */
const secondsMost = 5;
/** Time after which it is given up, however little of a processor a busy machine had for it. */
const patienceMs = 30_000;
/** A thread that has nothing to do goes. */
const idleMs = 300_000;

type Answer = { readonly read: ReadText } | { readonly error: string };

/** A thread that reads pages, one at a time. It is kept, since its libraries take longer to load than a page to read. */
export class ReadingThread {
  readonly #turns = new InTurn<"page">();
  #worker: Worker | undefined;
  #keep = (): void => {};

  /** Reads the thorough way, or, where that takes too long or too much memory, the quick one. */
  read(job: Omit<ReadingJob, "isQuick">, signal: AbortSignal): Promise<ReadText> {
    return this.#turns.run(["page"], async () => {
      for (const isQuick of [false, true]) {
        const answer = await this.#try({ ...job, isQuick }, signal);
        if ("read" in answer) return answer.read;
      }
      throw new UserError(`The page ${job.url} cannot be read: it takes too long to make sense of it.`);
    });
  }

  async close(): Promise<void> {
    this.#keep();
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  async #try(job: ReadingJob, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    this.#keep();
    this.#worker ??= startWorker();
    const worker = this.#worker;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const giveUp = (): void => reject(signal.reason);
    const forget = callAfter(patienceMs, () => resolve({ error: "time" }));
    const over = new AbortController();
    void untilUsed(worker, secondsMost, over.signal).then(() => resolve({ error: "time" }));
    const die = (): void => resolve({ error: "it has died" });
    let hasAnswered = false;
    const answer = (said: Answer): void => {
      hasAnswered = true;
      resolve(said);
    };
    signal.addEventListener("abort", giveUp);
    worker.on("message", answer);
    worker.on("error", die);
    worker.on("exit", die);
    worker.postMessage(job);
    try {
      return await promise;
    } finally {
      forget();
      over.abort();
      signal.removeEventListener("abort", giveUp);
      worker.off("message", answer);
      worker.off("error", die);
      worker.off("exit", die);
      if (hasAnswered) this.#keep = afterIdling(idleMs, () => void this.close());
      else await this.close();
    }
  }
}

/** Does not keep the process alive. */
function startWorker(): Worker {
  const worker = new Worker(new URL("./reading-worker.ts", import.meta.url), {
    resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 4 },
    // A library that complains does so here.
    stdout: true,
    stderr: true,
    env: {},
  });
  worker.unref();
  return worker;
}
