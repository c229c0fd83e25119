import { type ClientEvent, readEvent } from "../../adapters/matrix/events.ts";
import { type PageReader, readBefore } from "../../adapters/matrix/sweep.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Events, IncomingEvent } from "../../domain/tables/events.ts";
import { asIncoming } from "./intake.ts";

interface MissedParts {
  readonly events: Events;
  readonly client: PageReader;
}

/** Stretch of a room's timeline, and the user as whom it is read. */
interface Stretch {
  readonly userId: UserId;
  readonly roomId: RoomId;
  /** Token from which on it is read, where it is read page by page. */
  readonly after?: string | undefined;
}

/** Distance between missed events whose number is not known yet: a million have room between two that are known. */
const smallStep = 1e-6;

/**
 * Stores what is unknown in a stretch of a room's timeline, part by part, oldest first, each event at its place between
 * those that are known. What was before the user came is not stored: nobody has sent it to us, and nobody waits for
 * what follows from it.
 */
export class MissedEvents {
  readonly #parts: MissedParts;
  readonly #stretch: Stretch;
  /** Number of unknown events so far. */
  found = 0;
  /** Place of the last event so far. */
  #last: number | undefined;

  constructor(parts: MissedParts, stretch: Stretch) {
    this.#parts = parts;
    this.#stretch = stretch;
  }

  /** Stores a part of the stretch, the last or not. */
  async store(values: readonly Record<string, unknown>[], isLast: boolean): Promise<void> {
    const { events } = this.#parts;
    const { roomId } = this.#stretch;
    const read = values.flatMap((value) => {
      const event = readEvent({ ...value, room_id: roomId });
      return event.isValid ? [event.event] : (event.remains ?? []);
    });
    const missed = await this.#place(read, isLast);
    if (missed.length > 0) await events.store(missed, "sweep");
    const last = read.at(-1)?.event_id;
    if (last !== undefined && !isLast) this.#last = (await events.positions([last])).get(last) ?? this.#last;
    this.found += missed.length;
  }

  async #place(read: readonly ClientEvent[], isLast: boolean): Promise<IncomingEvent[]> {
    const { events } = this.#parts;
    const { roomId, userId } = this.#stretch;
    const positions = await events.positions(read.map((event) => event.event_id));
    const since = await events.joinedAt(roomId, userId);
    const missed: IncomingEvent[] = [];
    let run: ClientEvent[] = [];
    for (const event of read) {
      const position = positions.get(event.event_id);
      if (position === undefined) {
        run.push(event);
        continue;
      }
      if (run.length > 0 && position > since) {
        const before = await events.positionBefore(roomId, position);
        missed.push(...between(run, before, (position - before) / (run.length + 1)));
      }
      this.#last = position;
      run = [];
    }
    if (run.length === 0) return missed;
    const next = isLast ? undefined : await events.positionAfter(roomId, await this.#placeBefore());
    if (next === undefined) return [...missed, ...run.map((event) => asIncoming(event))];
    if (next <= since) return missed;
    const before = await events.positionBefore(roomId, next);
    return [...missed, ...between(run, before, Math.min(smallStep, (next - before) / (run.length + 1)))];
  }

  /** The place behind which an unknown event stands: of what is known before it. */
  async #placeBefore(): Promise<number> {
    if (this.#last !== undefined) return this.#last;
    const { client, events } = this.#parts;
    const { after, roomId, userId } = this.#stretch;
    for await (const page of readBefore(client, userId, roomId, after)) {
      const ids = page.events.flatMap(({ event_id: id }) => (typeof id === "string" ? [id as EventId] : []));
      const known = await events.positions(ids);
      const nearest = ids.find((id) => known.has(id));
      if (nearest !== undefined) return known.get(nearest) ?? 0;
    }
    return 0;
  }
}

const between = (run: readonly ClientEvent[], before: number, step: number): IncomingEvent[] =>
  run.map((event, index) => asIncoming(event, before + step * (index + 1)));
