import type { Leases } from "../../adapters/database/leases.ts";
import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import type { ClientEvent } from "../../adapters/matrix/events.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import { type PastReading, type PastReadings, pastPlace } from "../../domain/tables/past-readings.ts";
import { applyEdits } from "./edits.ts";
import { isSaid, readEvents } from "./hydrate.ts";
import { asIncoming } from "./intake.ts";
import { memoryOfSaid } from "./observed.ts";
import type { KindOf } from "./project.ts";

/** Key of the lease under which one process at a time reads, so that the homeserver is asked by one alone. */
const lease = "past";
/** Messages of one request. */
const pageLength = 100;
/** Rest between requests. */
const pauseMs = 1_000;
/** For a homeserver that does not answer. */
const retryMs = 30_000;
/** For what another process left to do. */
const passEveryMs = 30_000;

export interface PastKeeperParts {
  readonly readings: PastReadings;
  readonly client: Pick<MatrixClient, "messagesBefore">;
  readonly events: Events;
  readonly kindOf: KindOf;
  /** True if agents are shown nothing of what the user has said. */
  readonly ignores: (userId: UserId) => Promise<boolean>;
  /** True for a person's command. */
  readonly isCommand: (event: StoredEvent) => boolean;
  readonly leases: Pick<Leases, "holds" | "onGain">;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reads the history of rooms further back than agents are shown it, into their memory: page by page in the background,
 * as far as the agent may read it as a member. Nothing is answered, and nobody wakes. A page that cannot be stored is read
 * again.
 */
export class PastKeeper {
  readonly readings: PastReadings;
  readonly #parts: PastKeeperParts;
  readonly #rounds: Rounds;

  constructor(parts: PastKeeperParts) {
    this.readings = parts.readings;
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  /** An agent has come into a room. */
  nudge(): void {
    this.#rounds.nudge();
  }

  start(): void {
    const { clock, leases, log } = this.#parts;
    leases.onGain(() => this.nudge());
    this.#rounds.start(async () => {
      const hasRead = await this.readPage().catch((error: unknown) => {
        if (!this.#rounds.signal.aborted) log.warn(`history is read later: ${messageOf(error)}`);
        return false;
      });
      // A nudge does not cut this short: it is what the homeserver is spared.
      if (hasRead) await clock.sleep(pauseMs, this.#rounds.signal).catch(() => {});
      return hasRead ? 0 : passEveryMs;
    });
  }

  /** Ends after the page in hand; the next start goes on from there. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Reads the next page of the reading that has waited longest. Returns whether there was one. */
  async readPage(): Promise<boolean> {
    const { client, leases, log, readings } = this.#parts;
    const reading = leases.holds(lease) ? await readings.next() : undefined;
    if (!reading) return false;
    const { roomId, token, userId } = reading;
    const asked = { from: token, limit: pageLength, types: ["m.room.message"] };
    try {
      const page = await client.messagesBefore({ userId }, roomId, asked);
      await this.#keep(reading, readEvents(roomId, page.events), page.next);
    } catch (error) {
      if (!(error instanceof HomeserverError)) throw error;
      if (error.isFinal) {
        log.info({ room: roomId, agent: userId }, `no more of the history is read: ${messageOf(error)}`);
        await readings.end(reading);
      } else await readings.postpone(reading, error.retryAfterMs ?? retryMs);
    }
    return true;
  }

  async #keep(reading: PastReading, page: readonly ClientEvent[], next: string | undefined): Promise<void> {
    const { events, ignores, kindOf, readings } = this.#parts;
    const ids = page.map(({ event_id }) => event_id);
    const known = await events.positions(ids);
    // We have heard ourselves all that was said before.
    const hasMet = [...known.values()].some((position) => position <= reading.bottom);
    const young = page.filter(({ origin_server_ts }) => origin_server_ts >= reading.oldest.getTime());
    const said = young.filter(isSaid).slice(0, reading.most - reading.placed);
    const ignored = await Promise.all(said.map((event) => ignores(event.sender)));
    const placed = said
      .map((event, index) => asIncoming(event, pastPlace(reading, reading.placed + index)))
      .filter(({ eventId }, index) => !ignored[index] && !known.has(eventId))
      .toReversed();
    await readings.store(placed);
    await this.#takeBack(ids);
    for (const message of await readings.edited(ids)) await applyEdits(events, message);
    const memories = (await readings.messages(ids)).flatMap((event) => {
      const memory = this.#parts.isCommand(event) ? undefined : memoryOfSaid(event, kindOf);
      return memory ? [{ eventId: event.eventId, memory }] : [];
    });
    const taken = reading.placed + said.length;
    // Its time is what a sender's homeserver claims: a single old one proves nothing.
    const isTooOld = page.length > 0 && young.length === 0;
    const isOver = hasMet || isTooOld || taken >= reading.most || next === reading.token;
    await readings.keep(reading, { memories, placed: taken, next: isOver ? undefined : next });
    await this.#takeBack(ids);
  }

  /** Takes away what was redacted while it was read. */
  async #takeBack(eventIds: readonly ClientEvent["event_id"][]): Promise<void> {
    const { events, readings } = this.#parts;
    for (const eventId of await readings.redacted(eventIds)) await events.redact(eventId);
  }
}
