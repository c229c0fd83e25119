import { callAfter } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";

/** Time after which work that was left undone is tried again. */
const againAfterMs = 1_000;
/** Longest wait, at the end, for turns that still run. */
const graceMs = 10_000;

/** Does what there is to do in a conversation; one for which it does not return true comes again. */
export type Handler = (conversation: Conversation) => Promise<boolean>;

export const conversationKey = ({ agent, roomId }: Conversation): string => `${agent}|${roomId}`;

/**
 * The conversations that this process has work for: each runs once at a time, and once more where it came again
 * meanwhile. It dies with the process; what there is to do stands in the tables.
 */
export class TurnQueue {
  readonly #log: Log;
  readonly #waiting = new Map<string, Conversation>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #forget = new Set<() => void>();
  #handler: Handler | undefined;
  #concurrency = 0;
  #onIdle: (() => void) | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Number of further conversations that could run now. */
  get room(): number {
    return Math.max(0, this.#concurrency - this.#running.size);
  }

  /** True if there is room, and nobody waits for it. */
  get isIdle(): boolean {
    return this.room > 0 && this.#waiting.size === 0;
  }

  /** Runs conversations from now on, up to `concurrency` side by side. */
  work(concurrency: number, handler: Handler): void {
    this.#concurrency = concurrency;
    this.#handler = handler;
    this.#look();
  }

  /** Hears whenever one has run and the queue is idle. */
  onIdle(hear: () => void): void {
    this.#onIdle = hear;
  }

  /** Returns false where it waits for others to end first; for what runs in its own conversation it always waits. */
  send(conversation: Conversation): boolean {
    const key = conversationKey(conversation);
    if (!this.#waiting.has(key)) this.#waiting.set(key, conversation);
    this.#look();
    return this.#running.has(key);
  }

  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#concurrency = 0;
    for (const forget of this.#forget) forget();
    const { promise, resolve } = Promise.withResolvers<void>();
    const forget = callAfter(graceMs, resolve);
    await Promise.race([Promise.all(this.#running.values()), promise]);
    forget();
  }

  #look(): void {
    if (this.#waiting.size === 0) return;
    for (const [key, conversation] of this.#waiting) {
      if (this.room === 0) break;
      if (this.#running.has(key)) continue;
      this.#waiting.delete(key);
      this.#running.set(key, this.#run(key, conversation));
    }
  }

  async #run(key: string, conversation: Conversation): Promise<void> {
    const isDone = await this.#handler?.(conversation).catch((error: unknown) => {
      if (error instanceof RetryError) this.#log.warn(conversation, `a turn waits: ${messageOf(error)}`);
      else this.#log.error({ err: error, ...conversation }, "a turn could not be begun and is tried again");
      return false;
    });
    this.#running.delete(key);
    if (isDone === false) this.#sendLater(conversation);
    this.#look();
    if (this.isIdle) this.#onIdle?.();
  }

  #sendLater(conversation: Conversation): void {
    if (!this.#handler) return;
    const forget = callAfter(againAfterMs, () => {
      this.#forget.delete(forget);
      this.send(conversation);
    });
    this.#forget.add(forget);
  }
}
