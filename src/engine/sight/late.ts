import type { RoomId } from "../../base/lib/ids.ts";
import type { RoomView, TimelineEntry } from "../../base/prompt/types.ts";
import type { SeenEvent } from "../../domain/tables/sight.ts";
import type { RoomViews } from "./room-views.ts";
import { timelineEntry } from "./timeline.ts";

/** The most that is shown of another room beside the log. */
const shownElsewhere = 10;

/** Events that have arrived since the first one that is new in the turn: they do not stand in the log yet. */
interface Late {
  readonly since: Date | undefined;
  readonly byRoom: ReadonlyMap<RoomId, readonly TimelineEntry[]>;
}

/**
 * Lines are added to a log in the order of their arrival. So it ends before the first new event that the agent has not
 * seen, and what has arrived since then, in whatever room, is shown behind it until the next turn.
 */
export function findLate(
  events: readonly SeenEvent[],
  { views, seenBefore }: Pick<RoomViews, "views" | "seenBefore">,
  here: RoomId,
): Late {
  const fresh = new Set(views.find(({ roomId }) => roomId === here)?.newEvents.map(({ eventId }) => eventId));
  const times = events
    .filter(({ eventId, position }) => fresh.has(eventId) && position > seenBefore)
    .map(({ shownAt }) => shownAt.getTime());
  const since = times.length > 0 ? Math.min(...times) : Number.POSITIVE_INFINITY;
  const late = events.filter(({ eventId, shownAt }) => fresh.has(eventId) || shownAt.getTime() >= since);
  const byRoom = Map.groupBy(late.map(timelineEntry), ({ roomId }) => roomId);
  return { since: times.length > 0 ? new Date(since) : undefined, byRoom };
}

/** Rooms with what is late as their new events; what was not new before may be left out: it comes to the log. */
export const withLate = (rooms: readonly RoomView[], { byRoom }: Late, here: RoomId): RoomView[] =>
  rooms.map((room) => {
    const late = byRoom.get(room.roomId) ?? [];
    if (room.roomId !== here) return { ...room, newEvents: late.slice(-shownElsewhere) };
    const fresh = new Set(room.newEvents.map(({ eventId }) => eventId));
    const beside = late.map(({ eventId }) => eventId).filter((eventId) => !fresh.has(eventId));
    return {
      ...room,
      newEvents: late,
      known: new Set([...(room.known ?? []), ...beside]),
      unread: Math.max(room.unread, late.length),
    };
  });
