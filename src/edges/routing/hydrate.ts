import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { type ClientEvent, readEvent } from "../../adapters/matrix/events.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import { type PastReadings, pastPlace } from "../../domain/tables/past-readings.ts";
import type { RoomSnapshot, Rooms } from "../../domain/tables/rooms.ts";
import { applyEdits } from "./edits.ts";
import { asIncoming } from "./intake.ts";
import { memoriesOfPast } from "./observed.ts";
import { type KindOf, snapshot } from "./project.ts";

/** Events of the past that are read when an agent joins: the history window shows as many. More is read later. */
const pastEvents = 50;
/** Pages in which the join is looked for. */
const pagesAtMost = 30;

interface HydrateServices {
  readonly client: MatrixClient;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly readings: PastReadings;
  readonly kindOf: KindOf;
  /** True for a person's command. */
  readonly isCommand: Parameters<typeof memoriesOfPast>[1]["isCommand"];
  /** True if agents are shown nothing of what the user has said. */
  readonly ignores: (userId: UserId) => Promise<boolean>;
}

/**
 * Reads what was before us when an agent joins a room: its state, and the end of its history. The homeserver pushes
 * only what happens from then on. What is older is left to the keeper of the past. Safe to repeat; throws when the
 * homeserver does not answer.
 */
export async function hydrate(
  { client, events, rooms, readings, kindOf, isCommand, ignores }: HydrateServices,
  join: StoredEvent,
  agent: UserId,
): Promise<void> {
  const as = { userId: agent };
  const [state, past] = await Promise.all([client.roomState(as, join.roomId), readPast(client, agent, join)]);
  const before = readEvents(join.roomId, past.events).filter((event) => isSaid(event) || isSealed(event));
  const ignored = await Promise.all(before.map((event) => ignores(event.sender)));
  const shown = before.filter((_, index) => !ignored[index]);
  const coming = { ...join, userId: agent };
  const places = await readings.begin(coming, pastEvents);
  const known = await events.positions(before.map(({ event_id }) => event_id));
  const placed = shown.map((event, index) => asIncoming(event, pastPlace(places, index))).toReversed();
  await events.store(placed, "history");
  const readable = placed.filter((event) => !isSealed(event));
  await rooms.markAsHistory(
    join.roomId,
    readable.map(({ eventId }) => eventId),
    memoriesOfPast(readable, { isCommand, kindOf }),
  );
  for (const original of new Set(placed.flatMap(({ replaces }) => replaces ?? []))) {
    const message = await events.find(original);
    if (message) await applyEdits(events, message);
  }
  // We have heard ourselves all that was said before.
  const hasMet = [...known.values()].some((position) => position <= places.bottom);
  await readings.leave(coming, placed.length, hasMet || placed.length >= places.most ? undefined : past.next);
  // Last, because it makes the agent a member: from then on there is nothing left to read.
  await rooms.adopt(join.roomId, snapshotOf(join.roomId, state, kindOf), join.position);
}

/** True for a message that says something: one that is redacted does not. */
export const isSaid = ({ type, content }: { readonly type: string; readonly content: unknown }): boolean =>
  type === "m.room.message" && isObject(content) && content.body !== undefined;

/** Read by whoever routes it. */
const isSealed = ({ type, content }: { readonly type: string; readonly content: unknown }): boolean =>
  type === "m.room.encrypted" && isObject(content) && content.ciphertext !== undefined;

/** A room's state as the homeserver gives it, as one snapshot. */
export const snapshotOf = (roomId: RoomId, state: readonly unknown[], kindOf: KindOf): RoomSnapshot =>
  snapshot(
    readEvents(roomId, state).map(({ content, sender, state_key: stateKey = null, type }) => ({
      type,
      stateKey,
      content,
      sender,
    })),
    kindOf,
  );

export const readEvents = (roomId: RoomId, values: readonly unknown[]): ClientEvent[] =>
  values.flatMap((value) => {
    const event = readEvent({ ...(value as object), room_id: roomId });
    return event.isValid ? [event.event] : [];
  });

/** End of a room's history, newest first, and where older events begin. */
interface Past {
  readonly events: readonly unknown[];
  readonly next: string | undefined;
}

/**
 * Reads the events before the join in the room's timeline. Events behind it are on their way to us, however many they are
 * by now, and never the past.
 */
async function readPast(client: MatrixClient, agent: UserId, join: StoredEvent): Promise<Past> {
  const as = { userId: agent };
  let from: string | undefined;
  for (let page = 0; page < pagesAtMost; page++) {
    const { events, next } = await client.messagesBefore(as, join.roomId, { from, limit: pastEvents });
    const joinAt = events.findIndex((event) => isObject(event) && event.event_id === join.eventId);
    if (joinAt >= 0) {
      const past = events.slice(joinAt + 1);
      if (joinAt === 0 || next === undefined) return { events: past, next };
      const older = await client.messagesBefore(as, join.roomId, { from: next, limit: pastEvents - past.length });
      return { events: [...past, ...older.events], next: older.next };
    }
    if (next === undefined) break;
    from = next;
  }
  return { events: [], next: undefined };
}
