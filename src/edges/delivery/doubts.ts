import { HomeserverError } from "../../adapters/matrix/client.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Outbox, OutboxDraft, OutboxRow } from "../../domain/tables/outbox.ts";

/** Kinds of rows that become events which hold their key: only these can be looked for. */
const kindsWithKey: ReadonlySet<OutboxDraft["kind"]> = new Set(["message", "file", "media", "draft"]);

interface DoubtParts {
  readonly outbox: Pick<Outbox, "echoOf" | "findLastPending">;
  /** Reads what the homeserver knows of a user's messages in a room. */
  readonly reconcile: (userId: UserId, roomId: RoomId) => Promise<void>;
}

/**
 * Rows of the outbox that the homeserver may have without our knowing: those that waited when their rooms came to this
 * process, and those whose last attempt it did not answer. It recognises what is sent again by its transaction id, and
 * may have forgotten that: by a restart, a restore, or after 24 hours. So each of these rows is looked for first.
 */
export class Doubts {
  readonly #parts: DoubtParts;
  /** By room: rows up to this one were there when the room came to this process. */
  #before: ReadonlyMap<RoomId, number> = new Map();
  /** Counts when rooms came to this process, and up to which time `#before` tells of it. */
  #gains = 1;
  #known = 0;
  /** Users and rooms that were read since then. */
  readonly #read = new Set<string>();
  /** Rows that were tried or looked for here: whether it is certain that the homeserver has them not. */
  readonly #certain = new Map<string, boolean>();

  constructor(parts: DoubtParts) {
    this.#parts = parts;
  }

  /** Rooms came to this process: whoever had them before may have sent what waits in them. */
  noteGain(): void {
    this.#gains += 1;
  }

  /** To be awaited before rows are taken from the table. */
  async ready(): Promise<void> {
    const gains = this.#gains;
    if (this.#known === gains) return;
    this.#before = await this.#parts.outbox.findLastPending();
    this.#known = gains;
    this.#read.clear();
  }

  /** An attempt to send the row has failed; `isRefused`: the homeserver said so. */
  noteFailure(key: string, isRefused: boolean): void {
    this.#certain.set(key, isRefused);
  }

  /** Nothing is to be sent any more. */
  forget(key: string): void {
    this.#certain.delete(key);
  }

  /** The event that the row has become already, if it has; the homeserver is asked only where there is doubt. */
  async eventOf(row: OutboxDraft & Partial<Pick<OutboxRow, "id" | "isForgotten">>): Promise<EventId | undefined> {
    const { key, roomId, sender } = row;
    const wasThere = row.id !== undefined && row.id <= (this.#before.get(roomId) ?? 0);
    if (!kindsWithKey.has(row.kind) || (this.#certain.get(key) ?? !(wasThere || row.isForgotten))) return undefined;
    const place = `${sender} ${roomId}`;
    if (this.#certain.has(key) || !this.#read.has(place)) {
      await this.#parts.reconcile(sender, roomId).catch((error: unknown) => {
        // A user who may not read may send nevertheless, or is told when sending.
        if (!(error instanceof HomeserverError && error.isFinal)) throw error;
      });
      this.#read.add(place);
    }
    const eventId = await this.#parts.outbox.echoOf(row);
    if (eventId === undefined) this.#certain.set(key, true);
    return eventId;
  }
}
