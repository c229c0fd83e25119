import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { draftContent, draftEdit } from "../../adapters/matrix/draft.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { type Draft, type DraftPlace, withdrawalOf } from "../../domain/speech/draft.ts";
import { findObstacle } from "../../domain/speech/speaking.ts";
import type { Outbox, OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { Sealing } from "./sealing.ts";

/** An answer that is whole within this time is shown at once. Between edits it is longer, and longer each time. */
const firstPauseMs = 1_000;
const growth = 1.3;
const longestPauseMs = 15_000;
/** Text of the draft while the model goes on to work. */
const pending = "…";

interface DraftParts {
  readonly outbox: Outbox;
  readonly rooms: Rooms;
  readonly client: MatrixClient;
  readonly sealing: Pick<Sealing, "once">;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Somebody is there who may not read what the answer is made from. */
class Unheard extends Error {}

/**
 * Shows an answer while the model writes it: a message that is edited. The message and its withdrawal go through the
 * outbox, so that no death leaves it there; the edits are sent as they come. Once somebody has come who may not read what
 * it is made from, it is taken back at once.
 */
export class GrowingMessage implements Draft {
  readonly #parts: DraftParts;
  readonly #place: DraftPlace;
  readonly #ended = new AbortController();
  #text = () => "";
  #shown = "";
  #showing: Promise<void> | undefined;
  #queued: Promise<unknown> | undefined;
  #event: EventId | undefined;
  #edits = 0;

  constructor(parts: DraftParts, place: DraftPlace) {
    this.#parts = parts;
    this.#place = place;
  }

  write(text: () => string): void {
    this.#text = text;
    this.#showing ??= this.#show().catch(async (error: unknown) => {
      if (!this.#ended.signal.aborted) this.#parts.log.info(`the draft is not shown any more: ${messageOf(error)}`);
      if (error instanceof Unheard) await this.withdraw();
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
    const { agent, audience, key, roomId, sources, thread, turn } = this.#place;
    const hearing = { here: roomId, audience, sources, owner: agent.owner };
    const { client, onOutbox, outbox, rooms } = this.#parts;
    const text = this.#text() || (this.#shown && pending);
    if (text === this.#shown) return false;
    const silenced = await findObstacle(roomId, agent, rooms);
    if (silenced) throw new Error(`the agent cannot speak there: ${silenced}`);
    this.#ended.signal.throwIfAborted();
    if (!this.#queued) {
      const content = draftContent(text, thread, key);
      const queueing = outbox.addHeard(
        [{ key, roomId, sender: agent.userId, kind: "draft", content }],
        turn.id,
        hearing,
      );
      this.#queued = queueing;
      if (!(await queueing)) throw new Unheard("somebody has come");
      onOutbox([roomId]);
    } else {
      this.#event ??= await outbox.eventOf(roomId, key);
      if (this.#event === undefined) return false;
      if (!(await rooms.mayHear(hearing))) throw new Unheard("somebody has come");
      this.#ended.signal.throwIfAborted();
      const as = { userId: agent.userId, deviceId: agent.deviceId };
      const id = `${key}.${turn.epoch}.${++this.#edits}`;
      const edit = await this.#parts.sealing.once(agent.userId, roomId, draftEdit(this.#event, text));
      await client.send(as, roomId, { ...edit, transactionId: id });
    }
    this.#shown = text;
    return true;
  }
}
