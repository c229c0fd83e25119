import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Outbox, OutboxDraft } from "../../domain/tables/outbox.ts";

/** Longest wait for the echo of a sent event, which marks its row as sent. */
const echoWithinMs = 1_000;

type Held =
  | { readonly roomId: RoomId; readonly state: "waiting" | "sending" }
  | { readonly roomId: RoomId; readonly state: "sent"; readonly eventId: EventId; readonly at: number };

/**
 * Rows of the outbox in the hands of this process: from when they are handed over or taken, until the table says that
 * they were sent. An echo that is routed says so; rows without one are written together a little later. A death before
 * that costs a request: the row is sent again, under the same id.
 */
export class InHand {
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #rows = new Map<string, Held>();
  readonly #closed = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(outbox: Outbox, clock: Clock, log: Log) {
    this.#outbox = outbox;
    this.#clock = clock;
    this.#log = log;
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  /** True if nobody has begun to send it. */
  isWaiting(key: string): boolean {
    return this.#rows.get(key)?.state === "waiting";
  }

  put({ key, roomId }: OutboxDraft, state: "waiting" | "sending"): void {
    this.#rows.set(key, { roomId, state });
  }

  /** The homeserver has it; whose echo has come by now is not in hand any more. */
  markSent(key: string, eventId: EventId): void {
    const row = this.#rows.get(key);
    if (!row) return;
    this.#rows.set(key, { roomId: row.roomId, state: "sent", eventId, at: this.#clock.monotonic() });
    this.#writing ??= this.#writeLate();
  }

  /** Gives a row back to the table, unless the homeserver has it. */
  drop(key: string): void {
    if (this.#rows.get(key)?.state !== "sent") this.#rows.delete(key);
  }

  /** The table says that it was sent. */
  forget(key: string): void {
    this.#rows.delete(key);
  }

  eventOf(key: string): EventId | undefined {
    const row = this.#rows.get(key);
    return row?.state === "sent" ? row.eventId : undefined;
  }

  /** Keys of what the homeserver has in the room, and the table does not say so. */
  sentIn(roomId: RoomId): string[] {
    return this.#sent((row) => row.roomId === roomId).map(({ key }) => key);
  }

  /** Writes all that was sent. */
  async close(): Promise<void> {
    this.#closed.abort();
    await this.#writing;
    await this.#write(this.#sent());
  }

  #sent(isMeant: (row: Held & { state: "sent" }) => boolean = () => true): { key: string; eventId: EventId }[] {
    return [...this.#rows].flatMap(([key, row]) =>
      row.state === "sent" && isMeant(row) ? [{ key, eventId: row.eventId }] : [],
    );
  }

  /** Runs as long as something was sent whose row does not say so. */
  async #writeLate(): Promise<void> {
    while (this.#sent().length > 0 && !this.#closed.signal.aborted) {
      await this.#clock.sleep(echoWithinMs, this.#closed.signal).catch(() => {});
      const late = this.#clock.monotonic() - echoWithinMs;
      await this.#write(this.#sent(({ at }) => at <= late));
    }
    this.#writing = undefined;
  }

  async #write(rows: readonly { readonly key: string; readonly eventId: EventId }[]): Promise<void> {
    if (rows.length === 0) return;
    try {
      await this.#outbox.sent(rows);
      for (const { key } of rows) this.#rows.delete(key);
    } catch (error) {
      this.#log.warn(`that ${rows.length} messages were sent is written later: ${messageOf(error)}`);
    }
  }
}
