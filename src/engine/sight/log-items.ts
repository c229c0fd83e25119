import { agentName } from "../../adapters/matrix/message.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { memo, memoEach } from "../../base/lib/memo.ts";
import { type Element, element } from "../../base/lmml/element.ts";
import { leanEntry } from "../../base/prompt/lean.ts";
import { beginning } from "../../base/prompt/measure.ts";
import type { LogEntry } from "../../base/prompt/types.ts";
import type { EntryRow, SeenEvent } from "../../domain/tables/sight.ts";
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
  const { fresh, open, self, until } = reading;
  const isPast = (at: Date): boolean => until === undefined || at.getTime() < until.getTime();
  const said = findSaid(thoughts, open);
  const [ids, words] = [new Set(said.map(({ id }) => id)), new Set(said.map(({ text }) => text.trim()))];
  const discussed = discussedIn(events, reading);
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
        const entry = discussed.has(eventId) ? whole : inShort(whole, event.sender, reading);
        return { position, arrivedAt: shownAt, entry };
      }),
    ...ephemeris.flatMap(({ id, at }, index) => {
      const thought = thoughts[index];
      if (!thought || !isPast(at) || isSaid(thought)) return [];
      return [{ position: id, arrivedAt: at, entry: thoughtEntry(thought) }];
    }),
  ];
}

const isOurs = (sender: UserId, { self, botUserId }: Reading): boolean =>
  sender === botUserId || agentName(sender, splitUserId(self).server) !== undefined;

const inShort = (entry: LogEntry, sender: UserId, reading: Reading): LogEntry =>
  isOurs(sender, reading) ? answerLine(entry) : commandLine(entry, reading.prefix);

/** Events that people have replied to, or begun a thread with: commands and answers among them are spoken of. */
const discussedIn = (events: readonly SeenEvent[], reading: Reading): ReadonlySet<EventId> =>
  new Set(
    events.flatMap((event) => {
      const entry = timelineEntry(event);
      const speaks = entry.kind === "message" && !isOurs(event.sender, reading) && !isCommand(entry, reading.prefix);
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
