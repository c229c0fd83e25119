import type { Agents } from "../database/agents.ts";
import type { Queue } from "../database/queue.ts";
import type { Renders } from "../database/renders.ts";
import type { Conversation } from "../database/routing.ts";
import type { Turns } from "../database/turns.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { BudgetBook } from "./budget.ts";

/** Storing a wake and sending its job are two statements; a death between them costs this long at most. */
const passEveryMs = 30_000;

/** Sees to it that every conversation with unread wakes has a job, and that timers ring. */
export class WakeKeeper {
  readonly #queue: Queue;
  readonly #turns: Turns;
  readonly #agents: Agents;
  readonly #renders: Renders;
  readonly #book: BudgetBook;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #stopped = new AbortController();

  constructor(parts: {
    queue: Queue;
    turns: Turns;
    agents: Agents;
    renders: Renders;
    book: BudgetBook;
    clock: Clock;
    log: Log;
  }) {
    this.#queue = parts.queue;
    this.#turns = parts.turns;
    this.#agents = parts.agents;
    this.#renders = parts.renders;
    this.#book = parts.book;
    this.#clock = parts.clock;
    this.#log = parts.log;
  }

  /** Sends the jobs; a conversation that has one gets no second. */
  async send(conversations: readonly Conversation[]): Promise<void> {
    await Promise.all(conversations.map((conversation) => this.#queue.send(conversation)));
  }

  /** The same for callers that cannot wait: what fails is made good by the next pass. */
  sendSoon(conversations: readonly Conversation[]): void {
    this.send(conversations).catch((error: unknown) =>
      this.#log.warn(`a wake waits for the next pass: ${messageOf(error)}`),
    );
  }

  /** Takes up what a process of our name left behind, then passes regularly until stopped. */
  async start(): Promise<void> {
    // A process dies also between taking a job and opening its turn. Where another one lives and is just about to
    // open it, the turn's epoch keeps the two apart.
    const left = [...(await this.#turns.abandoned()), ...(await this.#turns.unread())];
    await this.#queue.release(left);
    await this.send(left);
    await this.#pass();
    void this.#repeat();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #repeat(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        await this.#clock.sleep(passEveryMs, this.#stopped.signal);
        await this.#pass();
      } catch (error) {
        if (!this.#stopped.signal.aborted) this.#log.warn(`looking for wakes: ${messageOf(error)}`);
      }
    }
  }

  async #pass(): Promise<void> {
    await this.send(await this.#agents.wakeByTimer());
    await this.send(await this.#turns.unread());
    await this.#renders.forgetOld();
    await this.#book.keep();
  }
}
