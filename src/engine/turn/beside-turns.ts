import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { conversationKey } from "./queue.ts";

/** Pause after an attempt that failed, or came to nothing. */
const againAfterMs = 600_000;

/** Services by which work is done beside turns. */
export interface BesideParts {
  readonly clock: Clock;
  readonly log: Log;
}

/** Work in the background, for which nobody waits: one job at a time for each conversation, and a pause after a failure. */
export abstract class BesideTurns {
  /** Aborted when work that is under way is given up. */
  protected readonly stopped = new AbortController();
  readonly #parts: BesideParts;
  readonly #failure: string;
  /** Conversations at work. */
  readonly #working = new Map<string, Promise<void>>();
  /** Time before which a conversation is not tried again. */
  readonly #notBefore = new Map<string, number>();

  /** @param failure words with which the log tells of an error */
  constructor({ clock, log }: BesideParts, failure: string) {
    this.#parts = { clock, log };
    this.#failure = failure;
  }

  /** Resolves when nothing is under way any more. */
  async idle(): Promise<void> {
    await Promise.all(this.#working.values());
  }

  /** Gives up what is under way: it is as if it had not begun. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.idle();
  }

  /** Begins a job for the conversation, unless one is under way or rests. `job` says whether it came to something. */
  protected begin(conversation: Conversation, job: () => Promise<boolean>): void {
    const { clock, log } = this.#parts;
    const key = conversationKey(conversation);
    const isEarly = clock.monotonic() < (this.#notBefore.get(key) ?? Number.NEGATIVE_INFINITY);
    if (isEarly || this.#working.has(key) || this.stopped.signal.aborted) return;
    const work = job()
      .catch((error: unknown) => {
        if (!this.stopped.signal.aborted)
          log.warn({ agent: conversation.agent, room: conversation.roomId }, `${this.#failure}: ${messageOf(error)}`);
        return false;
      })
      .then((isDone) => {
        this.#working.delete(key);
        if (isDone) this.#notBefore.delete(key);
        else this.#notBefore.set(key, clock.monotonic() + againAfterMs);
      });
    this.#working.set(key, work);
  }
}
