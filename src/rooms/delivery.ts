import { systemEvent } from "../context/ephemeris.ts";
import type { Leases } from "../database/leases.ts";
import type { Outbox, OutboxDraft, OutboxRow, Queued } from "../database/outbox.ts";
import type { Conversation } from "../database/routing.ts";
import type { Uploads } from "../database/uploads.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import { about, type Log } from "../lib/log.ts";
import { Mailbox } from "../lib/mailbox.ts";
import { render } from "../lmml/render.ts";
import { HomeserverError, type MatrixClient, type Sender } from "../matrix/client.ts";
import { withdraw } from "../matrix/draft.ts";
import { inlineCode } from "../matrix/markdown.ts";
import { relatedEvent, relatingTo } from "../matrix/relation.ts";
import { InHand } from "./in-hand.ts";
import { uploadFiles, uploadText } from "./upload.ts";

const rowsAtOnce = 10;
/** 1, 2, 4 … seconds between attempts, up to this. */
const longestPauseMs = 60_000;

export interface DeliveryParts {
  readonly outbox: Outbox;
  readonly uploads: Uploads;
  readonly leases: Leases;
  readonly client: MatrixClient;
  readonly clock: Clock;
  readonly log: Log;
  /** The device under which a user sends. */
  readonly deviceOf: (userId: UserId) => Promise<string | undefined>;
  /** Reads what the homeserver knows of a user's messages in a room, for rows that are older than its memory. */
  readonly reconcile: (userId: UserId, roomId: RoomId) => Promise<void>;
  readonly tellOperators: (text: string, key: string) => void;
  /** These conversations have something to work on. */
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  readonly onSettled: (outcome: "sent" | "failed" | "retried") => void;
}

/** Sends the outbox: in order per room, many rooms side by side, each row until the homeserver has it or refuses it. */
export class Delivery {
  readonly #parts: DeliveryParts;
  readonly #mailbox: Mailbox<RoomId>;
  readonly #inHand: InHand;
  readonly #stopped = new AbortController();
  /** Rooms whose first row is waiting for its next attempt. */
  readonly #pausing = new Set<RoomId>();

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    this.#inHand = new InHand(parts.outbox, parts.clock, parts.log);
    this.#mailbox = new Mailbox((roomId, error) => {
      parts.log.error({ err: error, room: roomId }, "delivery failed and is tried again");
      this.#later(roomId, 1_000);
    });
  }

  /** Something waits to be sent into these rooms. */
  nudge(roomIds: readonly RoomId[]): void {
    this.#take(this.#parts.leases.mine("outbox", [...new Set(roomIds)]));
  }

  /**
   * The same for what was queued just now, which need not be read back where nothing else waits before it: what waited
   * when it was queued is in our hands too, and goes first.
   */
  hand({ drafts, fresh, before }: Queued): void {
    const direct = fresh.length === drafts.length && before?.every((key) => this.#inHand.has(key));
    const byRoom = Map.groupBy(drafts, ({ roomId }) => roomId);
    for (const roomId of this.#parts.leases.mine("outbox", [...byRoom.keys()])) {
      if (direct) this.#takeOver(roomId, byRoom.get(roomId) ?? []);
      else this.#take([roomId]);
    }
  }

  /** The row with this key has come back as an event, and is marked as sent. */
  echoed(key: string): void {
    this.#inHand.settled(key);
  }

  async start(): Promise<void> {
    const { leases, outbox } = this.#parts;
    await leases.serve(
      "outbox",
      (roomIds) => this.#take(roomIds),
      () => outbox.roomsWithPending(),
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

  /** What is not sent here stays in the table, and is taken from there. */
  async #sendHanded(roomId: RoomId, rows: readonly OutboxDraft[]): Promise<void> {
    try {
      for (const row of rows) {
        // It may have been taken from the table by now, or have come back.
        if (!this.#inHand.isWaiting(row.key)) continue;
        if (this.#pausing.has(roomId) || !(await this.#sendNext({ ...row, attempts: 1, forgotten: false }))) return;
      }
    } finally {
      for (const { key } of rows) this.#inHand.drop(key);
    }
  }

  /** Two processes that believe to hold the room send the same rows in the same order under the same ids: one event each. */
  async #sendRoom(roomId: RoomId): Promise<void> {
    const { leases, outbox } = this.#parts;
    // This may have been asked for before the pause began.
    if (this.#pausing.has(roomId)) return;
    for (let full = true; full; ) {
      const rows = await outbox.take(roomId, rowsAtOnce, leases.proof(roomId), this.#inHand.sentIn(roomId));
      for (const row of rows) if (!(await this.#sendNext(row))) return;
      full = rows.length === rowsAtOnce;
    }
  }

  /** Returns whether the next row may be sent. */
  async #sendNext(row: OutboxRow): Promise<boolean> {
    if (this.#stopped.signal.aborted || !this.#parts.leases.holds(row.roomId)) return false;
    this.#inHand.put(row, "sending");
    try {
      return await this.#sendRow(row);
    } finally {
      this.#inHand.drop(row.key);
    }
  }

  async #sendRow(row: OutboxRow): Promise<boolean> {
    const { outbox, log, onSettled, onWoken } = this.#parts;
    try {
      if (row.forgotten && (await this.#wasSent(row))) return true;
      const content = await this.#contentOf(row);
      if (content === undefined) {
        await outbox.failed(row, "what it relates to was not sent", null);
        onSettled("failed");
        return true;
      }
      const eventId = await this.#send({ ...row, content });
      // What is no event has no echo.
      if (eventId === undefined) await outbox.sent([{ key: row.key, eventId }]);
      else this.#inHand.sent(row.key, eventId);
      onSettled("sent");
      return true;
    } catch (error) {
      if (!(error instanceof HomeserverError)) throw error;
      if (error.final) {
        log.warn({ room: row.roomId, sender: row.sender, kind: row.kind }, `not sent, and given up: ${error.message}`);
        const told = systemEvent(
          this.#parts.clock.now(),
          `Something of yours for the room ${row.roomId} was refused by the homeserver and will not be sent: ${messageOf(error)}`,
        );
        onWoken(await outbox.failed(row, messageOf(error), render(told)));
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
      this.#later(row.roomId, pause);
      return false;
    }
  }

  /** Beyond its memory the homeserver would take the row for a new one: the echo decides. */
  async #wasSent(row: OutboxRow): Promise<boolean> {
    await this.#parts.reconcile(row.sender, row.roomId);
    const eventId = await this.#parts.outbox.echoOf(row);
    if (eventId !== undefined) await this.#parts.outbox.sent([{ key: row.key, eventId }]);
    return eventId !== undefined;
  }

  /** Undefined where it relates to something that was given up. */
  async #contentOf({ about: earlier, content, roomId }: OutboxRow): Promise<OutboxRow["content"] | undefined> {
    if (earlier == null) return content;
    const eventId = this.#inHand.eventOf(earlier) ?? (await this.#parts.outbox.eventOf(roomId, earlier));
    return eventId && (relatingTo(content as Record<string, unknown>, eventId) as OutboxRow["content"]);
  }

  async #send(row: OutboxRow): Promise<EventId | undefined> {
    const { client } = this.#parts;
    const deviceId = await this.#parts.deviceOf(row.sender);
    const as: Sender = { userId: row.sender, ...(deviceId !== undefined && { deviceId }) };
    const content = row.content as Record<string, unknown>;
    switch (row.kind) {
      case "join":
        await client.join(as, row.roomId);
        return undefined;
      case "leave":
        await client.leave(as, row.roomId, String(content.reason ?? ""));
        return undefined;
      case "profile":
        await client.setProfile(
          row.sender,
          String(content.displayName),
          typeof content.avatar === "string" ? content.avatar : null,
        );
        return undefined;
      case "file":
        return client.send(as, row.roomId, "m.room.message", row.key, await uploadText(client, as, content));
      case "media":
        return client.send(
          as,
          row.roomId,
          "m.room.message",
          row.key,
          await uploadFiles(client, this.#parts.uploads, as, row),
        );
      case "reaction":
        return react(client, as, row, content);
      case "withdrawal":
        await withdraw(client, as, row.roomId, relatedEvent(content), row.key);
        return undefined;
      case "message":
      case "draft":
        return client.send(as, row.roomId, "m.room.message", row.key, content);
    }
  }

  #later(roomId: RoomId, pauseMs: number): void {
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

/** The same reaction a second time is refused by the homeserver: it is there. */
const react = (client: MatrixClient, as: Sender, row: OutboxRow, content: Record<string, unknown>) =>
  client.send(as, row.roomId, "m.reaction", row.key, content).catch((error: unknown) => {
    if (error instanceof HomeserverError && error.errcode === "M_DUPLICATE_ANNOTATION") return undefined;
    throw error;
  });
