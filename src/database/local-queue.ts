import { after } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { keyOf, type Queue } from "./queue.ts";
import type { Conversation } from "./routing.ts";

/** A job that was left undone comes again after this. */
const againAfterMs = 1_000;
/** How long running jobs are waited for at the end. */
const graceMs = 10_000;

/**
 * The jobs of a process that is alone with its database. They die with it, and the next one finds in the tables which
 * conversations have work.
 */
export class LocalQueue implements Queue {
  readonly #log: Log;
  readonly #waiting = new Map<string, Conversation>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #forget = new Set<() => void>();
  #handler: ((conversation: Conversation) => Promise<boolean>) | undefined;
  #concurrency = 0;

  constructor(log: Log) {
    this.#log = log;
  }

  async start(): Promise<void> {}

  async work(concurrency: number, handler: (conversation: Conversation) => Promise<boolean>): Promise<void> {
    this.#concurrency = concurrency;
    this.#handler = handler;
    this.look();
  }

  async send(conversation: Conversation): Promise<boolean> {
    const key = keyOf(conversation);
    if (!this.#waiting.has(key)) this.#waiting.set(key, conversation);
    return this.look();
  }

  look(): boolean {
    for (const [key, conversation] of this.#waiting) {
      if (this.#running.size >= this.#concurrency) break;
      if (this.#running.has(key)) continue;
      this.#waiting.delete(key);
      this.#running.set(key, this.#run(key, conversation));
    }
    return this.#running.size < this.#concurrency;
  }

  async release(): Promise<void> {}

  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#concurrency = 0;
    for (const forget of this.#forget) forget();
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = after(graceMs, resolve);
    await Promise.race([Promise.all(this.#running.values()), promise]);
    forget();
  }

  async #run(key: string, conversation: Conversation): Promise<void> {
    const done = await this.#handler?.(conversation).catch((error: unknown) => {
      this.#log.error({ err: error, ...conversation }, "a turn could not be begun and is tried again");
      return false;
    });
    this.#running.delete(key);
    if (done === false) this.#later(conversation);
    this.look();
  }

  #later(conversation: Conversation): void {
    if (!this.#handler) return;
    const forget = after(againAfterMs, () => {
      this.#forget.delete(forget);
      void this.send(conversation);
    });
    this.#forget.add(forget);
  }
}
