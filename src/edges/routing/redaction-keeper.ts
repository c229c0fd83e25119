import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import { type BlankingParts, blankRepetitions } from "./blanking.ts";

interface Parts extends BlankingParts {
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Marks that are due again, or were left behind by a process that died, are looked for this often. */
const lookEveryMs = 5_000;

/** Blanks what repeats redacted words, beside the routing of events; a mark in the database says what is still to be done. */
export class RedactionKeeper {
  readonly #parts: Parts;
  readonly #stopped = new AbortController();
  #working: Promise<void> = Promise.resolve();
  #nudged = Promise.withResolvers<void>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Something was redacted. */
  nudge(): void {
    this.#nudged.resolve();
  }

  start(): void {
    this.#working = this.#work();
  }

  /** Ends after the mark in hand; those that are left stay due. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.nudge();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#parts;
    while (!this.#stopped.signal.aborted) {
      this.#nudged = Promise.withResolvers();
      try {
        if (await this.#next()) continue;
      } catch (error) {
        log.error({ err: error }, `redacted words are blanked later: ${messageOf(error)}`);
      }
      const over = new AbortController();
      const sleeping = clock.sleep(lookEveryMs, AbortSignal.any([over.signal, this.#stopped.signal])).catch(() => {});
      await Promise.race([sleeping, this.#nudged.promise]);
      over.abort();
    }
  }

  /** Returns whether there was a mark to work on. */
  async #next(): Promise<boolean> {
    const { marks, outbox, onOutbox } = this.#parts;
    const mark = await marks.take();
    if (!mark) return false;
    const { open, outbox: drafts } = await blankRepetitions(mark, this.#parts);
    if (drafts.length > 0) {
      await outbox.add(drafts);
      onOutbox(drafts.map(({ roomId }) => roomId));
    }
    await marks.putBack(mark, open);
    return true;
  }
}
