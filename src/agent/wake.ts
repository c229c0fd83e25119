import type { Agents } from "../database/agents.ts";
import type { Leases } from "../database/leases.ts";
import type { Notifier } from "../database/notify.ts";
import type { Queue } from "../database/queue.ts";
import type { Renders } from "../database/renders.ts";
import type { Conversation } from "../database/routing.ts";
import type { Turns } from "../database/turns.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { FileSystemParts } from "../vfs/file-system.ts";
import type { Approvals } from "./approvals.ts";
import type { BudgetBook } from "./budget.ts";

/** Storing a wake and sending its job are two statements; a death between them costs this long at most. */
const passEveryMs = 30_000;
const passesPerHour = 120;

interface WakeParts {
  readonly queue: Queue;
  readonly leases: Leases;
  readonly notifier: Notifier;
  readonly turns: Turns;
  readonly agents: Agents;
  readonly renders: Renders;
  readonly files: Pick<FileSystemParts, "forgetOld">;
  readonly book: BudgetBook;
  readonly approvals: Approvals;
  readonly clock: Clock;
  readonly log: Log;
}

/** Sees to it that every conversation with unread wakes has a job, that timers ring, and that no question waits for ever. */
export class WakeKeeper {
  readonly #parts: WakeParts;
  readonly #stopped = new AbortController();
  #passes = 0;

  constructor(parts: WakeParts) {
    this.#parts = parts;
    parts.notifier.on("turns", () => void parts.queue.look());
  }

  /** Sends the jobs; a conversation that has one gets no second. What this process has no room for is offered to others. */
  async send(conversations: readonly Conversation[]): Promise<void> {
    const { leases, notifier, queue } = this.#parts;
    const taken = await Promise.all(conversations.map((conversation) => queue.send(conversation)));
    if (!leases.alone && taken.includes(false)) notifier.tell("turns");
  }

  /** The same for callers that cannot wait: what fails is made good by the next pass. */
  sendSoon(conversations: readonly Conversation[]): void {
    this.send(conversations).catch((error: unknown) =>
      this.#parts.log.warn(`a wake waits for the next pass: ${messageOf(error)}`),
    );
  }

  /** Takes up what a process of our name left behind, then passes regularly until stopped. */
  async start(): Promise<void> {
    // A process dies also between taking a job and opening its turn. Where others live it may be theirs that is about
    // to open: those jobs are left to the heartbeat.
    const { leases, queue, turns } = this.#parts;
    const abandoned = await turns.abandoned();
    const left = [...abandoned, ...(await turns.unread())];
    await queue.release(leases.alone ? left : abandoned);
    await this.send(left);
    void this.#repeat();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #repeat(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#pass().catch((error: unknown) => {
        if (!this.#stopped.signal.aborted) this.#parts.log.warn(`looking for wakes: ${messageOf(error)}`);
      });
      await this.#parts.clock.sleep(passEveryMs, this.#stopped.signal).catch(() => {});
    }
  }

  async #pass(): Promise<void> {
    await this.send(await this.#parts.agents.wakeByTimer());
    await this.#parts.approvals.expire();
    await this.send(await this.#parts.turns.unread());
    await this.#parts.renders.forgetOld();
    if (this.#passes++ % passesPerHour === 0) await this.#parts.files.forgetOld();
    await this.#parts.book.keep();
  }
}
