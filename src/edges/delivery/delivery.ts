import type { Leases } from "../../adapters/database/leases.ts";
import { HomeserverError } from "../../adapters/matrix/client.ts";
import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { withTarget } from "../../adapters/matrix/relation.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import type { Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { about, type Log } from "../../base/lib/log.ts";
import { Mailbox } from "../../base/lib/mailbox.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Outbox, OutboxDraft, OutboxRow, Queued } from "../../domain/tables/outbox.ts";
import { Doubts } from "./doubts.ts";
import { InHand } from "./in-hand.ts";
import { refusalNotice } from "./refusal.ts";
import type { Sealing } from "./sealing.ts";
import { type SendingParts, sendRow } from "./send-row.ts";

const rowsAtOnce = 10;
/** Longest pause between attempts, which grows: 1, 2, 4 … seconds. */
const longestPauseMs = 60_000;
const brokenAttempts = 5;

export interface DeliveryParts extends SendingParts {
  readonly outbox: Outbox;
  readonly sealing: Sealing;
  readonly leases: Leases;
  readonly clock: Clock;
  readonly log: Log;
  /** Reads what the homeserver knows of a user's messages in a room, for rows that it may have; see `Doubts`. */
  readonly reconcile: (userId: UserId, roomId: RoomId) => Promise<void>;
  /** True if no other bridge speaks for our agents. */
  readonly maySend: () => boolean;
  readonly tellOperators: (text: string, key: string) => void;
  /** Called with conversations that have work now. */
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  readonly onSettled: (outcome: "sent" | "failed" | "retried") => void;
}

/** Row from the table; or a draft that was handed over directly, and that nobody has tried to send. */
type SentRow = OutboxDraft & Pick<OutboxRow, "attempts"> & Partial<OutboxRow>;

/** Sends the outbox: in order per room, many rooms side by side, each row until the homeserver has it or refuses it. */
export class Delivery {
  readonly #parts: DeliveryParts;
  readonly #mailbox: Mailbox<RoomId>;
  readonly #inHand: InHand;
  readonly #doubts: Doubts;
  readonly #stopped = new AbortController();
  /** Rooms whose first row is waiting for its next attempt. */
  readonly #pausing = new Set<RoomId>();
  /** Number of times that a bug kept a row from being sent, by its key. */
  readonly #broken = new Map<string, number>();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.#inHand = new InHand(parts.outbox, parts.clock, parts.log);
    this.#doubts = new Doubts(parts);
    this.#mailbox = new Mailbox((roomId, error) => {
      if (error instanceof RetryError) parts.log.warn({ room: roomId }, `delivery waits: ${messageOf(error)}`);
      else parts.log.error({ err: error, room: roomId }, "delivery failed and is tried again");
      this.#resumeLater(roomId, 1_000);
    });
  }

  /** Takes note that rows wait for these rooms. */
  nudge(roomIds: readonly RoomId[]): void {
    this.#take(this.#parts.leases.mine("outbox", [...new Set(roomIds)]));
  }

  /**
   * Sends rows that were queued just now. They are not read back from the table if all earlier rows of the room are in
   * memory, too: those go first.
   */
  hand({ drafts, fresh, before }: Queued): void {
    const isDirect = fresh.length === drafts.length && before?.every((key) => this.#inHand.has(key));
    const byRoom = Map.groupBy(drafts, ({ roomId }) => roomId);
    for (const roomId of this.#parts.leases.mine("outbox", [...byRoom.keys()])) {
      if (isDirect) this.#takeOver(roomId, byRoom.get(roomId) ?? []);
      else this.#take([roomId]);
    }
  }

  /** The row with this key has come back as an event, and is marked as sent. */
  takeEcho(key: string): void {
    this.#inHand.forget(key);
    this.#doubts.forget(key);
  }

  async start(): Promise<void> {
    const { leases, outbox } = this.#parts;
    leases.onGain(() => this.#doubts.noteGain());
    await leases.serve(
      "outbox",
      (roomIds) => this.#take(roomIds),
      () => outbox.findRoomsWithPending(),
    );
  }

  /** Sends all rows that came while sending was paused. */
  resume(): void {
    this.#parts.outbox.findRoomsWithPending().then(
      (roomIds) => this.nudge(roomIds),
      (error: unknown) => this.#parts.log.error({ err: error }, "what was left lying is sent later"),
    );
  }

  /** Ends after the requests in progress. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#mailbox.idle();
    await this.#inHand.close();
  }

  #take(roomIds: readonly RoomId[]): void {
    if (this.#stopped.signal.aborted) return;
    for (const roomId of roomIds) {
      if (!this.#pausing.has(roomId))
        this.#mailbox.post(roomId, () => about({ room: roomId }, () => this.#sendRoom(roomId)));
    }
  }

  #takeOver(roomId: RoomId, rows: readonly OutboxDraft[]): void {
    if (this.#stopped.signal.aborted || this.#pausing.has(roomId)) return;
    for (const row of rows) if (!this.#inHand.has(row.key)) this.#inHand.put(row, "waiting");
    this.#mailbox.post(roomId, () => about({ room: roomId }, () => this.#sendHanded(roomId, rows)));
  }

  /** Rows that are not sent here stay in the table, and are taken from there. */
  async #sendHanded(roomId: RoomId, rows: readonly OutboxDraft[]): Promise<void> {
    try {
      for (const row of rows) {
        // The row may have been taken from the table by now, or its event may have come back.
        if (!this.#inHand.isWaiting(row.key)) continue;
        if (this.#pausing.has(roomId) || !(await this.#sendNext({ ...row, attempts: 1 }))) return;
      }
    } finally {
      for (const { key } of rows) this.#inHand.drop(key);
    }
  }

  /** Two processes that believe to hold the room send the same rows in the same order under the same ids: one event each. */
  async #sendRoom(roomId: RoomId): Promise<void> {
    const { leases, outbox } = this.#parts;
    // This call may come from before the pause.
    if (this.#pausing.has(roomId)) return;
    await this.#doubts.ready();
    for (let isFull = true; isFull; ) {
      const rows = await outbox.take(roomId, rowsAtOnce, leases.proof(roomId), this.#inHand.sentIn(roomId));
      for (const row of rows) if (!(await this.#sendNext(row))) return;
      isFull = rows.length === rowsAtOnce;
    }
  }

  /** Sends a row; returns true if the next row may be sent. */
  async #sendNext(row: SentRow): Promise<boolean> {
    if (this.#stopped.signal.aborted || !this.#parts.maySend() || !this.#parts.leases.holds(row.roomId)) return false;
    this.#inHand.put(row, "sending");
    try {
      return await this.#sendRow(row);
    } finally {
      this.#inHand.drop(row.key);
    }
  }

  async #sendRow(row: SentRow): Promise<boolean> {
    const { outbox, log, onSettled, onWoken, sealing } = this.#parts;
    try {
      if (await this.#wasSent(row)) return true;
      const way = await sealing.wayOf(row);
      if (way === "closed") {
        await this.#withhold(row);
        return true;
      }
      const content = await this.#contentOf(row);
      if (content === undefined) {
        await outbox.giveUp(row, { error: "what it relates to was not sent" });
        this.#doubts.forget(row.key);
        onSettled("failed");
        return true;
      }
      const eventId = await sendRow({ ...row, content, isSealed: way === "sealed" }, this.#parts).catch(
        (error: unknown) => {
          if (error instanceof HomeserverError)
            this.#doubts.noteFailure(row.key, error.status >= 400 && error.status < 500);
          throw error;
        },
      );
      this.#doubts.forget(row.key);
      // A row that becomes no event has no echo.
      if (eventId === undefined) await outbox.sent([{ key: row.key, eventId }]);
      else this.#inHand.markSent(row.key, eventId);
      onSettled("sent");
      return true;
    } catch (error) {
      if (!(error instanceof HomeserverError)) {
        await this.#giveUpOn(row, error);
        return true;
      }
      if (error.isFinal) {
        log.warn({ room: row.roomId, sender: row.sender, kind: row.kind }, `not sent, and given up: ${error.message}`);
        const told = systemEvent(
          this.#parts.clock.now(),
          `Something of yours for the room ${row.roomId} was refused by the homeserver and will not be sent: ${messageOf(error)}`,
        );
        const notice = refusalNotice(row, error);
        onWoken(await outbox.giveUp(row, { error: messageOf(error), told: toStored(told), notice }));
        this.#doubts.forget(row.key);
        this.nudge([row.roomId]);
        onSettled("failed");
        this.#parts.tellOperators(
          `The homeserver refuses what ${row.sender} sends into ${row.roomId} (${row.kind}), and it was given up: ${inlineCode(messageOf(error))}`,
          `refused ${row.sender} ${row.roomId} ${row.kind} ${error.errcode}`,
        );
        return true;
      }
      const pause = error.retryAfterMs ?? Math.min(longestPauseMs, 1_000 * 2 ** Math.min(row.attempts - 1, 10));
      log.info({ room: row.roomId, attempts: row.attempts, pause }, `not sent yet: ${error.message}`);
      onSettled("retried");
      this.#resumeLater(row.roomId, pause);
      return false;
    }
  }

  /** Gives up a row that would be plain text in an encrypted room: it may be older than the encryption. */
  async #withhold(row: SentRow): Promise<void> {
    const { key, kind, roomId, sender } = row;
    const { clock, log, onSettled, onWoken, outbox, tellOperators } = this.#parts;
    log.warn({ sender, kind }, "not sent, and given up: the room is encrypted");
    const told = systemEvent(clock.now(), `Something of yours was not sent: the room ${roomId} is encrypted by now.`);
    const error = "the room is encrypted";
    onWoken(await outbox.giveUp(row, { error, told: toStored(told), asksElsewhere: true }));
    this.#doubts.forget(key);
    onSettled("failed");
    tellOperators(
      `The room ${roomId} is encrypted. What ${sender} has to say there is not sent: it would be plain text.`,
      `encrypted ${sender} ${roomId}`,
    );
  }

  /**
   * Gives up a row that a bug keeps from being sent, after some attempts: each of them keeps its room waiting.
   * @throws the error itself, where the row is to be tried again
   */
  async #giveUpOn(row: SentRow, error: unknown): Promise<void> {
    const { key, kind, roomId, sender } = row;
    const { log, onSettled, onWoken, outbox, tellOperators } = this.#parts;
    const attempts = (this.#broken.get(key) ?? 0) + 1;
    if (error instanceof RetryError || attempts < brokenAttempts) {
      if (!(error instanceof RetryError)) this.#broken.set(key, attempts);
      throw error;
    }
    this.#broken.delete(key);
    log.error({ err: error, room: roomId, sender, kind }, "not sent by a bug, and given up");
    onWoken(await outbox.giveUp(row, { error: messageOf(error) }));
    this.#doubts.forget(key);
    onSettled("failed");
    tellOperators(
      `What ${sender} sends into ${roomId} (${kind}) could not be sent ${attempts} times, by a bug, and was given up: ${inlineCode(messageOf(error))}. The log has more.`,
      `broken ${key}`,
    );
  }

  /** True if the row's event has come back. The homeserver forgets old transaction ids, and would send the row again. */
  async #wasSent(row: SentRow): Promise<boolean> {
    const eventId = await this.#doubts.eventOf(row);
    if (eventId === undefined) return false;
    this.#parts.log.info({ room: row.roomId, eventId }, "not sent again: the homeserver has it already");
    await this.#parts.outbox.sent([{ key: row.key, eventId }]);
    this.#doubts.forget(row.key);
    return true;
  }

  /** Fills in the event to which the row relates; undefined if that one was given up. */
  async #contentOf({ about: earlier, content, roomId }: OutboxDraft): Promise<OutboxRow["content"] | undefined> {
    if (earlier == null) return content;
    const eventId = this.#inHand.eventOf(earlier) ?? (await this.#parts.outbox.eventOf(roomId, earlier));
    return eventId && (withTarget(content as Record<string, unknown>, eventId) as OutboxRow["content"]);
  }

  #resumeLater(roomId: RoomId, pauseMs: number): void {
    if (this.#pausing.has(roomId)) return;
    this.#pausing.add(roomId);
    void this.#parts.clock.sleep(pauseMs, this.#stopped.signal).then(
      () => {
        this.#pausing.delete(roomId);
        this.nudge([roomId]);
      },
      () => {},
    );
  }
}
