import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { RoomView } from "../../base/prompt/types.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { RoomRow, Seen } from "../../domain/tables/sight.ts";
import { timelineEntry } from "./timeline.ts";

/** Events that stand as new in one turn. */
const newEventsShown = 10;

interface Looking {
  readonly userId: UserId;
  readonly here: RoomId;
  /** Events that the turn has taken. */
  readonly taken: readonly EventId[];
  /** Those that give way to others; see `RoomView`. */
  readonly known: ReadonlySet<EventId>;
  readonly admins: readonly UserId[];
  /** Users who are shown by the names that they chose; others are shown by their ids. */
  readonly trusted: ReadonlySet<UserId>;
}

export interface RoomViews {
  readonly views: readonly RoomView[];
  /** Events of the conversation's own room, oldest first. */
  readonly here: readonly StoredEvent[];
  /** Those that are new, and that somebody else sent. */
  readonly news: readonly EventId[];
  /** Up to where it had seen them before. */
  readonly seenBefore: number;
}

/** The rooms as the conversation shows them. */
export function roomViews({ rooms, events, members }: Seen, looking: Looking): RoomViews {
  const { userId, here, admins, trusted } = looking;
  const taken = new Set(looking.taken);
  const views = rooms.map((row): RoomView => {
    const inRoom = events.filter((event) => event.roomId === row.roomId);
    const isHere = row.roomId === here;
    const [history, fresh] = isHere ? splitHere(inRoom, row, taken, userId) : splitElsewhere(inRoom, row, userId);
    const present = members.filter((member) => member.roomId === row.roomId);
    return {
      roomId: row.roomId,
      name: row.name ?? (row.isReadable ? nameFromMembers(nameGivers(present, userId), trusted) : ""),
      isDirect: row.isDirect,
      isClosed: !row.isReadable,
      members: present.map((member) => ({
        userId: member.userId,
        isAdmin: admins.includes(member.userId),
        isYou: member.userId === userId,
      })),
      memberCount: present[0]?.total ?? 0,
      history: history.map(timelineEntry),
      historyLines: Math.max(row.shownEvents - fresh.length, history.length),
      historyChars: row.shownChars,
      newEvents: fresh.map(timelineEntry),
      known: isHere ? looking.known : undefined,
      unread: isHere ? fresh.length : row.unread,
    };
  });
  return {
    views,
    here: events.filter((event) => event.roomId === here),
    news: (views.find(({ roomId }) => roomId === here)?.newEvents ?? [])
      .filter(({ sender }) => sender !== userId)
      .map(({ eventId }) => eventId),
    seenBefore: rooms.find((row) => row.roomId === here)?.seenPosition ?? 0,
  };
}

/**
 * In the conversation's own room the events that caused the turn are new, and so is what was said since the first of
 * them and was not shown before, up to the turn's limit.
 */
function splitHere(
  events: readonly StoredEvent[],
  row: RoomRow,
  taken: ReadonlySet<EventId>,
  self: UserId,
): [StoredEvent[], StoredEvent[]] {
  const first = events.findIndex((event) => taken.has(event.eventId));
  if (first < 0) return [[...events], []];
  let room = newEventsShown - events.filter((event) => taken.has(event.eventId)).length;
  const fresh = new Set<EventId>();
  for (const event of events.slice(first).toReversed()) {
    if (taken.has(event.eventId)) fresh.add(event.eventId);
    else if (event.sender !== self && event.position > row.seenPosition && room-- > 0) fresh.add(event.eventId);
  }
  return [events.filter((event) => !fresh.has(event.eventId)), events.filter((event) => fresh.has(event.eventId))];
}

/** In other rooms everything is new that came since the agent last worked there. */
function splitElsewhere(events: readonly StoredEvent[], row: RoomRow, self: UserId): [StoredEvent[], StoredEvent[]] {
  const unread = events
    .filter((event) => event.position > row.seenPosition && event.sender !== self)
    .slice(-newEventsShown);
  const fresh = new Set(unread);
  return [events.filter((event) => !fresh.has(event)), unread];
}

/** People by whom rooms are called that have no name. */
export const nameGiversOf = ({ rooms, members }: Pick<Seen, "members" | "rooms">, self: UserId): UserId[] =>
  rooms
    .filter(({ name, isReadable }) => isReadable && name === null)
    .flatMap(({ roomId }) =>
      nameGivers(
        members.filter((member) => member.roomId === roomId),
        self,
      ),
    )
    .map(({ userId }) => userId);

const nameGivers = <Member extends { readonly userId: UserId }>(members: readonly Member[], self: UserId): Member[] =>
  members.filter((member) => member.userId !== self).slice(0, 3);

const nameFromMembers = (
  members: readonly { readonly userId: UserId; readonly displayName: string | null }[],
  trusted: ReadonlySet<UserId>,
): string =>
  members.map(({ userId, displayName }) => (trusted.has(userId) ? (displayName ?? userId) : userId)).join(", ");
