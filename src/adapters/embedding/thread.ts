import { Worker } from "node:worker_threads";
import { afterIdling } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { EmbeddingError } from "./embedder.ts";

/** Some texts, or the end of the thread. */
export type ToWorker = { readonly texts: readonly string[] } | "end";

/** Vectors, or why there are none; of a model that cannot be loaded the error says so. */
export type FromWorker =
  | { readonly vectors: readonly Float32Array[] }
  | { readonly error: string; readonly isLoaded: boolean };

/** Texts that are given to the model at once: whoever comes meanwhile waits for no more than these. */
const charactersAtOnce = 1_024;
/** A conversation goes on within this time, mostly; then the model's 200 MB are given back. */
const usualIdleMs = 10 * 60_000;

/** Texts of one call, or a part of them. */
interface Piece {
  readonly texts: readonly string[];
  readonly resolve: (vectors: readonly Float32Array[]) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A local model, in a thread that is started when it is needed and ends when it was idle for a while. Texts of urgent
 * calls are taken before all others.
 */
export class EmbeddingThread {
  readonly #dir: string;
  readonly #idleMs: number;
  readonly #urgent: Piece[] = [];
  readonly #waiting: Piece[] = [];
  #current: Piece | undefined;
  #worker: Worker | undefined;
  #isLoaded = false;
  #keep = (): void => {};
  /** Resolves when every worker has ended that was started. */
  #ended: Promise<unknown> = Promise.resolve();
  #isStopped = false;

  /** @param dir folder with the files of the model */
  constructor(dir: string, idleMs = usualIdleMs) {
    this.#dir = dir;
    this.#idleMs = idleMs;
  }

  /** True if it has answered, and has not ended since. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  async embed(texts: readonly string[], isUrgent = false): Promise<readonly Float32Array[]> {
    const pieces = inPieces(texts).map(
      (part) =>
        new Promise<readonly Float32Array[]>((resolve, reject) =>
          (isUrgent ? this.#urgent : this.#waiting).push({ texts: part, resolve, reject }),
        ),
    );
    this.#next();
    return (await Promise.all(pieces)).flat();
  }

  /** Gives up what waits. Resolves when the thread has ended, which first ends the texts that it is at. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#giveUp(new EmbeddingError("the embedding model was stopped", "unavailable"));
    if (!this.#current) this.#end();
    await this.#ended;
  }

  #next(): void {
    if (this.#current) return;
    if (this.#isStopped) {
      this.#giveUp(new EmbeddingError("the embedding model was stopped", "unavailable"));
      this.#end();
      return;
    }
    this.#current = this.#urgent.shift() ?? this.#waiting.shift();
    if (!this.#current) return;
    this.#keep();
    this.#worker ??= this.#start();
    this.#worker.ref();
    this.#worker.postMessage({ texts: this.#current.texts } satisfies ToWorker);
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), {
      workerData: { dir: this.#dir },
      resourceLimits: { maxYoungGenerationSizeMb: 8, maxOldGenerationSizeMb: 96 },
    });
    const ended = Promise.withResolvers<void>();
    this.#ended = Promise.all([this.#ended, ended.promise]);
    worker.on("message", (message: FromWorker) => this.#hear(message));
    let reason = "its thread has ended";
    worker.on("error", (error) => {
      reason = messageOf(error);
    });
    worker.on("exit", () => {
      ended.resolve();
      if (this.#worker !== worker) return;
      this.#forget();
      const piece = this.#current;
      this.#current = undefined;
      piece?.reject(new EmbeddingError(`the embedding model in ${this.#dir} gave up: ${reason}`, "unavailable"));
      this.#next();
    });
    return worker;
  }

  #hear(message: FromWorker): void {
    const piece = this.#current;
    this.#current = undefined;
    if ("vectors" in message) {
      this.#isLoaded = true;
      piece?.resolve(message.vectors);
    } else {
      const kind = message.isLoaded ? "refused" : "misconfigured";
      piece?.reject(new EmbeddingError(`the embedding model cannot be used: ${message.error}`, kind));
      // Files that were put in order are read by the next thread.
      if (!message.isLoaded) this.#end();
    }
    this.#worker?.unref();
    this.#next();
    if (!this.#current) this.#keep = afterIdling(this.#idleMs, () => this.#end());
  }

  #giveUp(error: EmbeddingError): void {
    for (const { reject } of [...this.#urgent.splice(0), ...this.#waiting.splice(0)]) reject(error);
  }

  /** The thread ends by itself when it is at nothing. */
  #end(): void {
    this.#worker?.postMessage("end" satisfies ToWorker);
    this.#forget();
  }

  #forget(): void {
    this.#keep();
    this.#worker = undefined;
    this.#isLoaded = false;
  }
}

function inPieces(texts: readonly string[]): (readonly string[])[] {
  const pieces: string[][] = [];
  let length = 0;
  for (const text of texts) {
    const last = pieces.at(-1);
    length += text.length;
    if (last && length <= charactersAtOnce) last.push(text);
    else {
      pieces.push([text]);
      length = text.length;
    }
  }
  return pieces;
}
