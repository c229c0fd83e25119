import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { type Progress, utterInstead } from "../../domain/speech/progress.ts";
import { type Utterance, utter } from "../../domain/speech/utter.ts";
import type { Hearing } from "../../domain/tables/hearing.ts";
import type { Outbox, OutboxDraft } from "../../domain/tables/outbox.ts";

/** A result that comes within this time is shown at once as a whole. Between edits it is longer, and longer each time. */
const firstPauseMs = 1_000;
const growth = 1.15;
const longestPauseMs = 10_000;

interface ProgressParts {
  readonly outbox: Pick<Outbox, "addHeard" | "eventOf" | "has">;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/**
 * Shows the result of a command while it grows: a message, and edits of it, all of which go through the outbox. One is
 * queued only when the one before was sent.
 */
export class ProgressMessage implements Progress {
  readonly #parts: ProgressParts;
  readonly #place: Omit<Utterance, "text">;
  readonly #ended = new AbortController();
  #text = () => "";
  #hearing: Hearing | undefined;
  #showing: Promise<void> | undefined;
  #shown = "";
  #last: string | undefined;
  #edits = 0;

  /** @param place `key` is equal for one command, also after a death of the process */
  constructor(parts: ProgressParts, place: Omit<Utterance, "text">) {
    this.#parts = parts;
    this.#place = place;
  }

  show(text: () => string, hearing: Hearing): void {
    this.#text = text;
    this.#hearing = hearing;
    this.#showing ??= this.#show().catch((error: unknown) => {
      if (!this.#ended.signal.aborted) this.#parts.log.info(`progress is not shown any more: ${messageOf(error)}`);
    });
  }

  async end(): Promise<string | undefined> {
    this.#ended.abort();
    await this.#showing;
    const { key } = this.#place;
    return this.#showing !== undefined && (await this.#parts.outbox.has(key)) ? key : undefined;
  }

  async #show(): Promise<void> {
    for (let pause = firstPauseMs; ; ) {
      await this.#parts.clock.sleep(pause, this.#ended.signal);
      if (await this.#update()) pause = Math.min(pause * growth, longestPauseMs);
    }
  }

  /** Returns whether anything was queued. */
  async #update(): Promise<boolean> {
    const { onOutbox, outbox } = this.#parts;
    const { key, roomId } = this.#place;
    const text = this.#text();
    if (text === "" || text === this.#shown || !this.#hearing) return false;
    if (this.#last !== undefined && (await outbox.eventOf(roomId, this.#last)) === undefined) return false;
    const drafts = this.#draftsOf(text, this.#last !== undefined || (await outbox.has(key)));
    if (!(await outbox.addHeard(drafts, null, this.#hearing)))
      throw new Error("somebody is there who may not read all that it is made from");
    this.#last = drafts[0]?.key;
    this.#shown = text;
    onOutbox([roomId]);
    return true;
  }

  #draftsOf(text: string, isEdit: boolean): OutboxDraft[] {
    const { key } = this.#place;
    if (!isEdit) return utter({ ...this.#place, text });
    const at = this.#parts.clock.now().getTime();
    return utterInstead({ ...this.#place, text, key: `${key}.${at}.${++this.#edits}` }, key);
  }
}
