import { agentName } from "../../adapters/matrix/message.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { memo, memoEach } from "../../base/lib/memo.ts";
import { type Element, element } from "../../base/lmml/element.ts";
import { leanEntry } from "../../base/prompt/lean.ts";
import { beginning } from "../../base/prompt/measure.ts";
import type { LogEntry, RoomView } from "../../base/prompt/types.ts";
import type { EntryRow, Seen, SeenEvent } from "../../domain/tables/sight.ts";
import type { LogState } from "../../domain/tables/steps.ts";
import { findSaid, type LogItem } from "./log.ts";
import { timelineEntry } from "./timeline.ts";

interface Reading {
  readonly self: UserId;
  readonly botUserId: UserId;
  /** Before the words of a command. */
  readonly prefix: string;
  /** Rooms that are shown with what is said in them. */
  readonly open: ReadonlySet<RoomId>;
  /** Events that stand as new in this turn: they come to the log with the next. */
  readonly fresh: ReadonlySet<EventId>;
  /** Items that have arrived since then come to the log later: behind the new events. */
  readonly until: Date | undefined;
}

/**
 * Everything that may stand in the log. An action appears once: what the agent said stands in the rooms, not also as a
 * call or a thought.
 * @param thoughts the entries of the ephemeris, as they may be shown
 */
export function logItems(
  { events, ephemeris }: { readonly events: readonly SeenEvent[]; readonly ephemeris: readonly EntryRow[] },
  thoughts: readonly Element[],
  reading: Reading,
): LogItem[] {
  const { fresh, open, prefix, self, until } = reading;
  const isOurs = oursIn(reading);
  const isPast = (at: Date): boolean => until === undefined || at.getTime() < until.getTime();
  const said = findSaid(thoughts, open);
  const [ids, words] = [new Set(said.map(({ id }) => id)), new Set(said.map(({ text }) => text.trim()))];
  const discussed = discussedIn(events, prefix, isOurs);
  const isSaid = ({ name, attributes, children }: Element): boolean =>
    name === "thought"
      ? (attributes.sent === true && open.has(attributes.roomId as RoomId)) || words.has(String(children).trim())
      : ids.has(attributes.id);
  return [
    ...events
      .filter(({ eventId, shownAt }) => !fresh.has(eventId) && isPast(shownAt))
      .map((event) => {
        const { eventId, position, shownAt } = event;
        const whole = leanEntry(timelineEntry(event), self);
        const inShort = isOurs(event.sender) ? answerLine(whole) : commandLine(whole, prefix);
        const entry = discussed.has(eventId) ? whole : inShort;
        return { position, arrivedAt: shownAt, entry };
      }),
    ...ephemeris.flatMap(({ id, at }, index) => {
      const thought = thoughts[index];
      if (!thought || !isPast(at) || isSaid(thought)) return [];
      return [{ position: id, arrivedAt: at, entry: thoughtEntry(thought) }];
    }),
  ];
}

/** Tells the bridge's own users from others. Many events have few senders: each is judged once. */
const oursIn = ({ self, botUserId }: Reading): ((sender: UserId) => boolean) => {
  const { server } = splitUserId(self);
  const known = new Map<UserId, boolean>([[botUserId, true]]);
  return (sender) => {
    const isOurs = known.get(sender) ?? agentName(sender, server) !== undefined;
    known.set(sender, isOurs);
    return isOurs;
  };
};

/** Events that people have replied to, or begun a thread with: commands and answers among them are spoken of. */
const discussedIn = (
  events: readonly SeenEvent[],
  prefix: string,
  isOurs: ReturnType<typeof oursIn>,
): ReadonlySet<EventId> =>
  new Set(
    events.flatMap((event) => {
      const entry = timelineEntry(event);
      const speaks = entry.kind === "message" && !isOurs(event.sender) && !isCommand(entry, prefix);
      return (speaks ? (entry.replyTo ?? entry.threadId) : undefined) ?? [];
    }),
  );

/** The most characters of a command, or of the bridge's answer to it: neither is conversation. */
const lineChars = 80;

const firstLine = (entry: LogEntry): LogEntry => {
  const { element: shown } = entry;
  const text = String(shown.children).trim();
  const line = beginning(text.split("\n", 1)[0] ?? "", lineChars);
  if (line === text) return entry;
  return { ...entry, element: { ...shown, attributes: { ...shown.attributes, truncated: true }, children: line } };
};

const answerLine = memo(
  (entry: LogEntry): LogEntry => (entry.element.attributes.messageType === "m.notice" ? firstLine(entry) : entry),
);

const commandLine = memoEach((entry: LogEntry, prefix: string): LogEntry => {
  const { attributes, children, name } = entry.element;
  if (name !== "message" || typeof children !== "string") return entry;
  return isCommand({ messageType: String(attributes.messageType ?? "m.text"), body: children }, prefix)
    ? firstLine(entry)
    : entry;
});

const isCommand = ({ body, messageType }: { readonly body: string; readonly messageType: string }, prefix: string) =>
  messageType === "m.text" && body.startsWith(prefix) && /^\p{L}/u.test(body.slice(prefix.length));

/** Leaves of a sent result only that it was sent: the text stands in the call. */
const leanResult = (whole: Element): Element => {
  const [result] = typeof whole.children === "string" ? [] : whole.children;
  const [sent] = result === undefined || typeof result.children === "string" ? [] : result.children;
  if (whole.name !== "functionResult" || sent?.attributes.sent !== true) return whole;
  return { ...whole, children: [element("result", {}, "sent")] };
};

const thoughtEntry = memo((whole: Element): LogEntry => {
  const { timestamp, sent: _, roomId, ...attributes } = whole.attributes;
  const at = new Date(String(timestamp));
  const place = whole.name === "thought" || roomId === undefined ? {} : { roomId };
  return {
    source: "ephemeris",
    at: Number.isNaN(at.getTime()) ? undefined : at,
    element: { ...leanResult(whole), attributes: { ...place, ...attributes } },
  };
});

/** Finds the sources of which the limit was read: they may have older items. */
export const fullSources = (
  { events, ephemeris }: Pick<Seen, "ephemeris" | "events">,
  most: number,
): ReadonlySet<RoomId | "ephemeris"> =>
  new Set([
    ...[...Map.groupBy(events, ({ roomId }) => roomId)].flatMap(([roomId, { length }]) =>
      length >= most ? [roomId] : [],
    ),
    ...(ephemeris.length >= most ? (["ephemeris"] as const) : []),
  ]);

/** Leaves out of what was seen what has left the log with its cut, so that it may come to mind; undefined where nothing has. `rooms`: what is new in them stands beside it. */
export function withoutLeft(
  seen: Seen,
  { from }: LogState,
  rooms: readonly Pick<RoomView, "newEvents">[],
): Seen | undefined {
  const stays = new Set(rooms.flatMap(({ newEvents }) => newEvents.map(({ eventId }) => eventId)));
  const isIn = (source: RoomId | "ephemeris", place: number): boolean =>
    place > (from[source] ?? Number.NEGATIVE_INFINITY);
  const events = seen.events.filter(({ eventId, position, roomId }) => stays.has(eventId) || isIn(roomId, position));
  const ephemeris = seen.ephemeris.filter(({ id }) => isIn("ephemeris", id));
  const hasAll = events.length === seen.events.length && ephemeris.length === seen.ephemeris.length;
  return hasAll ? undefined : { ...seen, events, ephemeris };
}
