import { logElement, logEntryMax } from "../context/cacheable.ts";
import { sizeAt } from "../context/measure.ts";
import type { LogPiece, TimelineEntry } from "../context/types.ts";
import type { StoredEvent } from "../database/events.ts";
import type { LogState } from "../database/steps.ts";
import type { EventId, RoomId } from "../lib/ids.ts";
import { timelineEntry } from "./timeline.ts";

/** What a conversation's log may take of the characters of its context; beyond it, it is cut to half of that. */
const logShare = 0.5;

interface Logging {
  /** The turn that is shown the log. */
  readonly turnId: number;
  readonly here: RoomId;
  readonly serverName: string;
  readonly charsMax: number;
  /** Events that this turn is shown as new: they come to the log with the next. */
  readonly fresh: ReadonlySet<EventId>;
  /** A room with this many events may have older ones that were not read. */
  readonly eventsPerRoom: number;
}

/** What the conversation's log shows now, and what is to be remembered so that the next one begins with the same. */
export function advance(
  state: LogState,
  events: readonly StoredEvent[],
  logging: Logging,
): { pieces: LogPiece[]; next: LogState } {
  const kept = events.filter((event) => event.position > (state.from[event.roomId] ?? Number.NEGATIVE_INFINITY));
  const earlier = state.marks.filter((mark) => mark.turn !== logging.turnId);
  const marks = [...earlier, { turn: logging.turnId, to: reached(kept, earlier) }];
  const shown = kept.map((event) => shownIn(event, logging));
  const from = cut(shown, state.from, logging);
  const inLog = shown.filter(({ event }) => event.position > (from[event.roomId] ?? Number.NEGATIVE_INFINITY));
  const pieces = marks.flatMap((_, index) => piecesOf(inLog, marks, index, logging));
  const alive = marks.filter(({ to }) =>
    Object.entries(to).some(([roomId, position]) => position > (from[roomId] ?? Number.NEGATIVE_INFINITY)),
  );
  return { pieces, next: { from, marks: alive } };
}

interface ShownEvent {
  readonly event: StoredEvent;
  readonly entry: TimelineEntry;
  readonly chars: number;
}

const shownIn = (event: StoredEvent, { charsMax, serverName }: Logging): ShownEvent => {
  const entry = timelineEntry(event);
  return { event, entry, chars: sizeAt(logElement(entry, serverName, logEntryMax(charsMax)), 2) };
};

/** Up to where each room is shown that has something newer than the last mark of it. */
const reached = (events: readonly StoredEvent[], marks: LogState["marks"]): Record<string, number> => {
  const to: Record<string, number> = {};
  for (const { roomId, position } of events) to[roomId] = Math.max(to[roomId] ?? 0, position);
  return Object.fromEntries(Object.entries(to).filter(([roomId, position]) => position > lastMark(marks, roomId)));
};

const lastMark = (marks: LogState["marks"], roomId: string): number =>
  marks.findLast((mark) => mark.to[roomId] !== undefined)?.to[roomId] ?? Number.NEGATIVE_INFINITY;

/** Where the log begins in each room: as before while it fits, otherwise with the newer half of what may be there. */
const cut = (shown: readonly ShownEvent[], from: LogState["from"], logging: Logging): Record<string, number> => {
  const max = Math.floor(logging.charsMax * logShare);
  const result: Record<string, number> = { ...from };
  for (const [roomId, inRoom] of Map.groupBy(shown, ({ event }) => event.roomId)) {
    // Of a room that was never cut, or has more than was read, what is older stays out for good.
    const first = inRoom[0]?.event.position ?? 0;
    if (result[roomId] === undefined || inRoom.length >= logging.eventsPerRoom) result[roomId] = before(first);
  }
  if (shown.reduce((sum, { chars }) => sum + chars, 0) <= max) return result;
  let left = max / 2;
  const newestFirst = shown.toSorted((a, b) => b.event.sentAt.getTime() - a.event.sentAt.getTime());
  const over = newestFirst.filter(({ chars }) => {
    left -= chars;
    return left < 0;
  });
  for (const { event } of over) result[event.roomId] = Math.max(result[event.roomId] ?? 0, event.position);
  return result;
};

/** A place just before another: nothing can lie between them. */
const before = (position: number): number => position - Math.max(1e-9, Math.abs(position) * Number.EPSILON * 2);

/** What came with one mark: other rooms first, since the conversation's own goes on to grow while they do not. */
const piecesOf = (
  shown: readonly ShownEvent[],
  marks: LogState["marks"],
  index: number,
  { here, fresh }: Logging,
): LogPiece[] => {
  const mark = marks[index];
  const earlier = marks.slice(0, index);
  const rooms = Object.keys(mark?.to ?? {}) as RoomId[];
  const ordered = rooms.toSorted((a, b) => Number(a === here) - Number(b === here) || (a < b ? -1 : 1));
  return ordered.flatMap((roomId) => {
    const floor = lastMark(earlier, roomId);
    const ceiling = mark?.to[roomId] ?? 0;
    const entries = shown
      .filter(
        ({ event }) =>
          event.roomId === roomId && event.position > floor && event.position <= ceiling && !fresh.has(event.eventId),
      )
      .map(({ entry }) => entry);
    return entries.length > 0 ? [{ roomId, entries }] : [];
  });
};
