import type { Database } from "../database/connection.ts";
import { Events, type IncomingEvent, type Misfit } from "../database/events.ts";
import { type Fresh, storePushed } from "../database/pending.ts";
import { digest } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { type ClientEvent, readEvent } from "../matrix/events.ts";
import { editTarget } from "../matrix/message.ts";

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
    this.#database = database;
    this.#events = new Events(database);
    this.#log = log;
    this.#onStored = onStored;
    this.#tellOperators = tellOperators;
  }

  /** Stores the events of a transaction; what cannot be stored as it is goes into quarantine. Rejects if the database does. */
  async take(values: readonly unknown[]): Promise<void> {
    const incoming: IncomingEvent[] = [];
    const misfits: Misfit[] = [];
    for (const value of values) {
      const read = readEvent(value);
      if (read.ok) incoming.push(asIncoming(read.event));
      else misfits.push(misfit(JSON.stringify(value), read.reason));
    }
    if (misfits.length > 0) {
      await this.#quarantine(misfits);
    }
    this.#onStored(await storePushed(this.#database, incoming));
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

const misfit = (raw: string, reason: string): Misfit => ({ digest: digest(raw), reason, raw: Buffer.from(raw) });
