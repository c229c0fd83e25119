import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
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
  readonly #rounds: Rounds;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  /** Something was redacted. */
  nudge(): void {
    this.#rounds.nudge();
  }

  start(): void {
    this.#rounds.start(async () => {
      const isMore = await this.#next().catch((error: unknown) => {
        this.#parts.log.error({ err: error }, `redacted words are blanked later: ${messageOf(error)}`);
        return false;
      });
      return isMore ? 0 : lookEveryMs;
    });
  }

  /** Ends after the mark in hand; those that are left stay due. */
  stop(): Promise<void> {
    return this.#rounds.stop();
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
