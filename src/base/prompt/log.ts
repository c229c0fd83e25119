import type { EventId, RoomId } from "../lib/ids.ts";
import { flat } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { renderLine } from "../lmml/render.ts";
import { clockTime, withTimestamp } from "./lean.ts";
import { clip } from "./measure.ts";
import type { LogEntry, LogView } from "./types.ts";

/** The most that one entry takes in the log, in characters, for a conversation of `charsMax`. */
export const logEntryMax = (charsMax: number): number => Math.floor(charsMax / 20);

/** A log of which nothing is shown. */
export const logLeast = "<log truncated>";

/** End of the log; it stands behind what is the same in the next render. */
export const logEnd = "\n</log>\n\n";

/** An entry as it is written: a line, before which may stand that the room changes. */
export interface LogLine {
  readonly entry: LogEntry;
  readonly text: string;
}

const texts = new WeakMap<LogEntry, Map<string, string>>();

/** `stamp`: its time, where that is to be said. */
const textOf = (entry: LogEntry, stamp: string, sameSender: boolean): string => {
  const known = texts.get(entry) ?? new Map<string, string>();
  texts.set(entry, known);
  const key = sameSender ? `${stamp} again` : stamp;
  const text = known.get(key) ?? flat(`\n${renderLine(elementOf(entry.element, stamp, sameSender))}`);
  known.set(key, text);
  return text;
};

const elementOf = (whole: Element, stamp: string, sameSender: boolean): Element => {
  const { sender: _, ...attributes } = whole.attributes;
  const named = sameSender ? { ...whole, attributes } : whole;
  return stamp === "" ? named : withTimestamp(named, stamp);
};

const roomLine = (roomId: RoomId, { numbers }: LogView, truncated = false): string => {
  const n = numbers?.get(roomId);
  return `\n${renderLine(element("room", { ...(n === undefined ? { roomId: clip(roomId) } : { n }), truncated }))}`;
};

/** Rooms of which something older is left out; they are named at the log's beginning. */
const cutRooms = ({ leftOut }: LogView): RoomId[] =>
  ([...leftOut].filter((source) => source !== "ephemeris") as RoomId[]).toSorted();

/** Beginning of the log, before its lines. */
export const logHead = (log: LogView): string =>
  `<log${log.leftOut.size > 0 ? " truncated" : ""}>${cutRooms(log)
    .map((roomId) => roomLine(roomId, log, true))
    .join("")}`;

/**
 * Writes each entry; of room, date, minute and a message's sender only what is not as it was in the line before. Whoever
 * goes on behind the agent's own words is named again, unless nobody else has spoken there.
 */
export const logLines = (log: LogView, timeZone: string): LogLine[] => {
  let room = cutRooms(log).at(-1);
  let speaker: unknown;
  const speakers = new Set<unknown>();
  let [date, minute] = ["", ""];
  return log.entries.map((entry) => {
    const { source, at, element: shown } = entry;
    let before = "";
    if (source !== "ephemeris" && source !== room) {
      before = roomLine(source, log);
      [room, speaker] = [source, undefined];
      speakers.clear();
    }
    const { sender } = shown.attributes;
    const isMessage = shown.name === "message";
    const sameSender = isMessage && sender !== undefined && sender === speaker;
    if (isMessage && sender !== undefined) speakers.add(sender);
    if (isMessage && (sender !== undefined || speakers.size > 1)) speaker = sender;
    const time = at && clockTime(at, timeZone);
    const isNow = !time || (time.date === date && time.minute === minute);
    const stamp = isNow ? "" : time.date === date ? time.minute : `${time.date} ${time.minute}`;
    if (time) ({ date, minute } = time);
    return { entry, text: before + textOf(entry, stamp, sameSender) };
  });
};

/** A log as it stands in the prompt, without its end. */
interface WrittenLog {
  readonly text: string;
  readonly eventIds: readonly EventId[];
}

const write = (log: LogView, lines: readonly LogLine[]): string =>
  logHead(log) + lines.map(({ text }) => text).join("");

/**
 * The newest end of a log, in at most `room` characters beyond `logLeast`. What is left out grows by whole steps, counted
 * from the log's beginning: so the next renders begin alike.
 */
export const newestEnd = (
  log: LogView,
  timeZone: string,
  { room, step }: { readonly room: number; readonly step: number },
): WrittenLog => {
  const lines = logLines(log, timeZone);
  const most = room + logLeast.length;
  let [view, text] = [log, write(log, lines)];
  for (let surplus = Math.ceil((text.length - most) / step) * step; text.length > most; surplus += step) {
    view = withoutFirst(log, lines, surplus);
    text = view.entries.length > 0 ? write(view, logLines(view, timeZone)) : logLeast;
  }
  return { text, eventIds: view.entries.flatMap(({ eventId }) => eventId ?? []) };
};

/** A log without as many of its first entries as have `chars` characters together. */
const withoutFirst = (log: LogView, lines: readonly LogLine[], chars: number): LogView => {
  let left = chars;
  const first = lines.findIndex(({ text }) => {
    if (left <= 0) return true;
    left -= text.length;
    return false;
  });
  const count = first < 0 ? log.entries.length : first;
  const dropped = log.entries.slice(0, count).map(({ source }) => source);
  return { ...log, entries: log.entries.slice(count), leftOut: new Set([...log.leftOut, ...dropped]) };
};
