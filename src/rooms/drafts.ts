import { type Draft, type DraftPlace, withdrawalOf } from "../agent/draft.ts";
import { silencedIn } from "../agent/room.ts";
import type { Outbox, OutboxDraft } from "../database/outbox.ts";
import type { Rooms } from "../database/rooms.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { EventId, RoomId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { MatrixClient } from "../matrix/client.ts";
import { draftContent, draftEdit } from "../matrix/draft.ts";

/** An answer that is whole within this time is shown at once. Between edits it is longer, and longer each time. */
const firstPauseMs = 1_000;
const growth = 1.3;
const longestPauseMs = 15_000;
/** What stands there when the model goes on to work. */
const pending = "…";

interface DraftParts {
  readonly outbox: Outbox;
  readonly rooms: Rooms;
  readonly client: MatrixClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/**
 * Shows an answer while the model writes it: a message that is edited. The message and its withdrawal go through the
 * outbox, so that no death leaves it there; the edits are sent as they come.
 */
export class GrowingMessage implements Draft {
  readonly #parts: DraftParts;
  readonly #place: DraftPlace;
  readonly #ended = new AbortController();
  #text = () => "";
  #shown = "";
  #showing: Promise<void> | undefined;
  #queued: Promise<void> | undefined;
  #event: EventId | undefined;
  #edits = 0;

  constructor(parts: DraftParts, place: DraftPlace) {
    this.#parts = parts;
    this.#place = place;
  }

  write(text: () => string): void {
    this.#text = text;
    this.#showing ??= this.#show().catch((error: unknown) => {
      if (!this.#ended.signal.aborted) this.#parts.log.info(`the draft is not shown any more: ${messageOf(error)}`);
    });
  }

  async end(): Promise<readonly OutboxDraft[]> {
    this.#ended.abort();
    const { agent, key, roomId, turn } = this.#place;
    // It may have been queued although the answer did not arrive, and by a process that has died.
    await this.#queued?.catch(() => {});
    const isNone = this.#queued === undefined && turn.epoch === 1;
    if (isNone || !(await this.#parts.outbox.has(key))) return [];
    return [withdrawalOf({ key, roomId, sender: agent.userId })];
  }

  async withdraw(): Promise<void> {
    const { outbox, log, onOutbox } = this.#parts;
    try {
      const rows = await this.end();
      await outbox.add(rows);
      onOutbox(rows.map(({ roomId }) => roomId));
    } catch (error) {
      log.warn(`a draft was not taken back: ${messageOf(error)}`);
    }
  }

  async #show(): Promise<void> {
    for (let pause = firstPauseMs; ; ) {
      await this.#parts.clock.sleep(pause, this.#ended.signal);
      if (await this.#update()) pause = Math.min(pause * growth, longestPauseMs);
    }
  }

  /** Returns whether anything was sent. */
  async #update(): Promise<boolean> {
    const { agent, key, roomId, thread, turn } = this.#place;
    const { client, onOutbox, outbox, rooms } = this.#parts;
    const text = this.#text() || (this.#shown && pending);
    if (text === this.#shown) return false;
    const silenced = await silencedIn(roomId, agent, rooms);
    if (silenced) throw new Error(`the agent cannot speak there: ${silenced}`);
    this.#ended.signal.throwIfAborted();
    if (!this.#queued) {
      const content = draftContent(text, thread, key);
      this.#queued = outbox.add([{ key, roomId, sender: agent.userId, kind: "draft", content }], turn.id);
      await this.#queued;
      onOutbox([roomId]);
    } else {
      this.#event ??= await outbox.eventOf(roomId, key);
      if (this.#event === undefined) return false;
      const as = { userId: agent.userId, deviceId: agent.deviceId };
      const id = `${key}.${turn.epoch}.${++this.#edits}`;
      await client.send(as, roomId, "m.room.message", id, draftEdit(this.#event, text));
    }
    this.#shown = text;
    return true;
  }
}
