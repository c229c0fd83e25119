import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { type ClientEvent, readEvent } from "../../adapters/matrix/events.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { RoomSnapshot, Rooms } from "../../domain/tables/rooms.ts";
import { applyEdits } from "./edits.ts";
import { asIncoming } from "./intake.ts";
import { type KindOf, snapshot } from "./project.ts";

/** Events of the past that are read when an agent joins: the history window shows as many. */
const pastEvents = 50;
/** Pages in which the join is looked for. */
const pagesAtMost = 30;

interface HydrateServices {
  readonly client: MatrixClient;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly kindOf: KindOf;
  /** True if agents are shown nothing of what the user has said. */
  readonly ignores: (userId: UserId) => Promise<boolean>;
}

/**
 * Reads what was before us when an agent joins a room: its state, and the end of its history. The homeserver pushes
 * only what happens from then on. Safe to repeat; throws when the homeserver does not answer.
 */
export async function hydrate(
  { client, events, rooms, kindOf, ignores }: HydrateServices,
  join: StoredEvent,
  agent: UserId,
): Promise<void> {
  const as = { userId: agent };
  const [state, past] = await Promise.all([client.roomState(as, join.roomId), readPast(client, agent, join)]);
  const read = (values: readonly unknown[]) => readEvents(join.roomId, values);
  const before = read(past).filter(
    (event) => (event.type === "m.room.message" && event.content.body !== undefined) || isSealed(event),
  );
  const ignored = await Promise.all(before.map((event) => ignores(event.sender)));
  const shown = before.filter((_, index) => !ignored[index]);
  const floor = await events.positionBefore(join.roomId, join.position);
  const step = (join.position - floor) / (shown.length + 1);
  const placed = shown.toReversed().map((event, index) => asIncoming(event, floor + step * (index + 1)));
  await events.store(placed, "history");
  await rooms.markAsHistory(
    join.roomId,
    placed.filter((event) => !isSealed(event)).map((event) => event.eventId),
  );
  for (const original of new Set(placed.flatMap(({ replaces }) => replaces ?? []))) {
    const message = await events.find(original);
    if (message) await applyEdits(events, message);
  }
  // Last, because it makes the agent a member: from then on there is nothing left to read.
  await rooms.adopt(join.roomId, snapshotOf(join.roomId, state, kindOf), join.position);
}

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

const readEvents = (roomId: RoomId, values: readonly unknown[]): ClientEvent[] =>
  values.flatMap((value) => {
    const event = readEvent({ ...(value as object), room_id: roomId });
    return event.ok ? [event.event] : [];
  });

/**
 * Reads the events before the join in the room's timeline, newest first. Events behind it are on their way to us,
 * however many they are by now, and never the past.
 */
async function readPast(client: MatrixClient, agent: UserId, join: StoredEvent): Promise<unknown[]> {
  let from: string | undefined;
  for (let page = 0; page < pagesAtMost; page++) {
    const { events, next } = await client.messagesBefore({ userId: agent }, join.roomId, from, pastEvents);
    const joinAt = events.findIndex((event) => isObject(event) && event.event_id === join.eventId);
    if (joinAt >= 0) {
      const past = events.slice(joinAt + 1);
      if (joinAt === 0 || next === undefined) return past;
      const older = await client.messagesBefore({ userId: agent }, join.roomId, next, pastEvents - past.length);
      return [...past, ...older.events];
    }
    if (next === undefined) break;
    from = next;
  }
  return [];
}
