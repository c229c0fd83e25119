import type { Leases } from "../../adapters/database/leases.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { AgentName, Conversation, RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { BudgetBook } from "../../domain/budget/book.ts";
import type { FileSystemParts } from "../../domain/files/file-reader.ts";
import type { Agents } from "../../domain/tables/agents.ts";
import type { Renders } from "../../domain/tables/renders.ts";
import type { Turns } from "../../domain/tables/turns.ts";
import type { Approvals } from "../operations/approvals.ts";
import type { Handler, TurnQueue } from "./queue.ts";

/** Time between two looks for turns that lie although nobody has died. */
const passEveryMs = 30_000;
const passesPerHour = 120;

interface WakeParts {
  readonly queue: TurnQueue;
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

/**
 * Sees to it that somebody works in every conversation that waits, that timers ring, and that no question waits for
 * ever. A process works on what it has woken itself, and looks after the rooms that it holds: what lies there, because
 * whoever woke it or worked on it has died, it takes up. What it has no room for others may take; the first who claims
 * has it.
 */
export class WakeKeeper {
  readonly #parts: WakeParts;
  readonly #stopped = new AbortController();
  #passes = 0;
  #othersAreFull = false;

  constructor(parts: WakeParts) {
    this.#parts = parts;
    parts.notifier.on("turns", (about) => this.#hear(about));
    parts.leases.onChange(() => this.#soon(this.#takeUp()));
    parts.queue.onIdle(() => this.#soon(this.#help()));
  }

  /** Works on these conversations; what this process has no room for is offered to others. */
  send(conversations: readonly Conversation[]): void {
    const { leases, notifier, queue } = this.#parts;
    const taken = conversations.map((conversation) => queue.send(conversation));
    if (!leases.isAlone && taken.includes(false)) notifier.tell("turns");
  }

  /** Has whatever waits worked on, up to `atOnce` conversations side by side, then looks regularly until stopped. */
  async start(atOnce: number, work: Handler): Promise<void> {
    const { leases, queue } = this.#parts;
    // A process that does not renew its leases has lost its turns to others, or will.
    queue.work(atOnce, async (conversation) => leases.isLive && work(conversation));
    this.send(await this.#parts.turns.findWaiting());
    void this.#repeat();
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #repeat(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      for (const job of this.#jobs()) {
        await job().catch((error: unknown) => {
          if (!this.#stopped.signal.aborted) this.#parts.log.warn(`looking for wakes: ${messageOf(error)}`);
        });
      }
      await this.#parts.clock.sleep(passEveryMs, this.#stopped.signal).catch(() => {});
    }
  }

  /** All that is looked at in a pass: where one cannot be done, the others are. */
  #jobs(): (() => Promise<unknown>)[] {
    const { agents, approvals, book, files, renders } = this.#parts;
    const isHourly = this.#passes++ % passesPerHour === 0;
    return [
      async () => this.send(await agents.wakeByTimer()),
      () => approvals.expire(),
      () => this.#takeUp(),
      () => renders.forgetOld(),
      ...(isHourly ? [() => files.forgetOld()] : []),
      () => book.keep(),
    ];
  }

  /** Takes up everything that lies in rooms of ours. */
  async #takeUp(): Promise<void> {
    const waiting = await this.#parts.turns.findWaiting();
    this.send(waiting.filter(({ agent, roomId }) => this.#parts.leases.holds(roomId || agent)));
  }

  /** Takes turns that other processes have no room for. Called last, once there is nothing else to do. */
  async #help(): Promise<void> {
    const { queue, turns } = this.#parts;
    if (!this.#othersAreFull || !queue.isIdle) return;
    this.#othersAreFull = false;
    for (const conversation of (await turns.findWaiting()).slice(-queue.room)) queue.send(conversation);
  }

  /** Of others that have no room; or of what came to them in a conversation that this process works in. */
  #hear(about: readonly string[] | undefined): void {
    const { queue, turns } = this.#parts;
    const [session, agent, roomId] = about ?? [];
    if (session === undefined) {
      this.#othersAreFull = true;
      this.#soon(this.#help());
    } else if (session === turns.session) queue.send({ agent: agent as AgentName, roomId: roomId as RoomId });
  }

  /** The next pass makes good what fails here. */
  #soon(work: Promise<void>): void {
    work.catch((error: unknown) => this.#parts.log.warn(`looking for wakes: ${messageOf(error)}`));
  }
}
