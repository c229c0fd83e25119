import { type Database, type Json, withoutPatience } from "../../adapters/database/connection.ts";
import { type ClientEvent, isUnreadable, readEvent, remainsOf } from "../../adapters/matrix/events.ts";
import { editTarget } from "../../adapters/matrix/message.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Events, type IncomingEvent, type Misfit } from "../../domain/tables/events.ts";
import { type Fresh, storePushed } from "../../domain/tables/pending.ts";

/** Stores what the homeserver sends: every event, in order, before anything else is done with it. */
export class Intake {
  readonly #database: Database;
  readonly #events: Events;
  readonly #log: Log;
  readonly #onStored: (fresh: readonly Fresh[]) => void;
  readonly #tellOperators: (text: string, key: string) => void;

  constructor(
    database: Database,
    log: Log,
    onStored: (fresh: readonly Fresh[]) => void,
    tellOperators: (text: string, key: string) => void,
  ) {
    // The homeserver keeps what it was refused, and sends it again.
    this.#database = withoutPatience(database);
    this.#events = new Events(this.#database);
    this.#log = log;
    this.#onStored = onStored;
    this.#tellOperators = tellOperators;
  }

  /**
   * Stores the events of a transaction; what cannot be stored as it is goes into quarantine, and of a message remains that
   * it came. Rejects if the database does.
   */
  async take(values: readonly unknown[]): Promise<void> {
    const incoming: IncomingEvent[] = [];
    const misfits: Misfit[] = [];
    for (const value of values) {
      const read = readEvent(value);
      if (read.isValid) incoming.push(asIncoming(read.event));
      else misfits.push(misfit(textOf(value), read.reason));
      if (!read.isValid && read.remains) incoming.push(asIncoming(read.remains));
    }
    if (misfits.length > 0) {
      await this.#quarantine(misfits);
    }
    this.#onStored(await this.#store(incoming));
  }

  /** Stores events. One that can be read, but that the database cannot take, is put aside alone. */
  async #store(incoming: readonly IncomingEvent[]): Promise<Fresh[]> {
    try {
      return await storePushed(this.#database, incoming);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      const [first, ...others] = incoming;
      if (first && others.length === 0) {
        await this.#quarantine([misfit(JSON.stringify(first), messageOf(error))]);
        const content = first.content as Record<string, unknown>;
        if (first.type !== "m.room.message" || first.stateKey !== undefined || isUnreadable(content)) return [];
        return this.#store([{ ...first, content: remainsOf(content) as Json, replaces: undefined }]);
      }
      const fresh: Fresh[] = [];
      for (const event of incoming) fresh.push(...(await this.#store([event])));
      // Several of one room may wait now.
      return [...new Set(fresh.map(({ roomId }) => roomId))].map((roomId) => ({ roomId }));
    }
  }

  async takeMisfit(raw: string, reason: string): Promise<void> {
    await this.#quarantine([misfit(raw, reason)]);
  }

  async #quarantine(misfits: readonly Misfit[]): Promise<void> {
    this.#log.warn({ reasons: misfits.map(({ reason }) => reason) }, "put into quarantine");
    await this.#events.quarantine(misfits);
    for (const { digest, reason } of misfits) {
      this.#tellOperators(
        `Something that the homeserver sent cannot be stored and is in quarantine: ${reason}`,
        digest,
      );
    }
  }
}

export const asIncoming = (event: ClientEvent, position?: number): IncomingEvent => ({
  eventId: event.event_id,
  roomId: event.room_id,
  type: event.type,
  stateKey: event.state_key,
  sender: event.sender,
  sentAt: new Date(event.origin_server_ts),
  content: event.content as never,
  replaces: editTarget(event),
  redacts: event.redacts,
  position,
});

/** Levels that are kept of what is nested so deeply that it cannot be written. */
const levelsKept = 100;

const textOf = (value: unknown): string => {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(cut(value, levelsKept));
  }
};

const cut = (value: unknown, levels: number): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (levels === 0) return "(nested too deeply to be kept)";
  if (Array.isArray(value)) return value.map((inner) => cut(inner, levels - 1));
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cut(inner, levels - 1)]));
};

const misfit = (raw: string, reason: string): Misfit => ({ digest: digest(raw), reason, raw: Buffer.from(raw) });
