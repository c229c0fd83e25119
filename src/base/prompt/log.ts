import type { EventId, RoomId } from "../lib/ids.ts";
import { flat } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { renderLine } from "../lmml/render.ts";
import { clockTime, withTimestamp } from "./lean.ts";
import { clip } from "./measure.ts";
import type { LogEntry, LogView } from "./types.ts";

/** The most that one entry takes in the log, in characters, for a conversation of `charsMax`. */
export const logEntryMax = (charsMax: number): number => Math.floor(charsMax / 20);

/** The most that the summary of what has left the log takes. */
export const logSummaryMax = (charsMax: number): number => Math.min(1_500, 2 * logEntryMax(charsMax));

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
const textOf = (entry: LogEntry, stamp: string, isSameSender: boolean): string => {
  const known = texts.get(entry) ?? new Map<string, string>();
  texts.set(entry, known);
  const key = isSameSender ? `${stamp} again` : stamp;
  const text = known.get(key) ?? flat(`\n${renderLine(elementOf(entry.element, stamp, isSameSender))}`);
  known.set(key, text);
  return text;
};

const elementOf = (whole: Element, stamp: string, isSameSender: boolean): Element => {
  const { sender: _, ...attributes } = whole.attributes;
  const named = isSameSender ? { ...whole, attributes } : whole;
  return stamp === "" ? named : withTimestamp(named, stamp);
};

const roomLine = (roomId: RoomId, { numbers }: LogView, isTruncated = false): string => {
  const n = numbers?.get(roomId);
  return `\n${renderLine(element("room", { ...(n === undefined ? { roomId: clip(roomId) } : { n }), truncated: isTruncated }))}`;
};

/** Rooms of which something older is left out; they are named at the log's beginning. */
const cutRooms = ({ leftOut }: LogView): RoomId[] =>
  ([...leftOut].filter((source) => source !== "ephemeris") as RoomId[]).toSorted();

/** Beginning of the log, before its lines. */
export const logHead = (log: LogView): string =>
  `<log${log.leftOut.size > 0 ? " truncated" : ""}>${cutRooms(log)
    .map((roomId) => roomLine(roomId, log, true))
    .join("")}${summaryLine(log)}`;

const summaryLine = ({ summary }: LogView): string =>
  summary ? `\n${renderLine(element("summary", { tainted: summary.isTainted }, summary.text))}` : "";

/** Facts that the lines so far have said, and the next need not say again. */
interface Pen {
  readonly room: RoomId | undefined;
  readonly speaker: unknown;
  readonly speakers: ReadonlySet<unknown>;
  readonly date: string;
  readonly minute: string;
}

/** Lines of a log that were written, and how they go on. */
interface Written {
  readonly timeZone: string;
  readonly lines: readonly LogLine[];
  readonly pen: Pen;
}

const written = new WeakMap<LogView, Written>();

/**
 * Writes each entry; of room, date, minute and a message's sender only what is not as it was in the line before. Whoever
 * goes on behind the agent's own words is named again, unless nobody else has spoken there.
 * @param before a view of the log whose lines were written: where this one goes on from it, only the rest is written
 */
export const logLines = (log: LogView, timeZone: string, before?: LogView): readonly LogLine[] => {
  const known = written.get(log);
  if (known?.timeZone === timeZone) return known.lines;
  const begun = before && goesOn(log, before) ? written.get(before) : undefined;
  const result = writeOn(log, timeZone, begun?.timeZone === timeZone ? begun : unwritten(log, timeZone));
  written.set(log, result);
  return result.lines;
};

const unwritten = (log: LogView, timeZone: string): Written => ({
  timeZone,
  lines: [],
  pen: { room: cutRooms(log).at(-1), speaker: undefined, speakers: new Set(), date: "", minute: "" },
});

/** True if the log has all that was in the view before, written in the same way, and nothing else before the end of that. */
const goesOn = (log: LogView, before: LogView): boolean =>
  log.entries.length >= before.entries.length &&
  logHead(log) === logHead(before) &&
  areEqual(log.numbers, before.numbers) &&
  before.entries.every((entry, index) => entry === log.entries[index]);

const areEqual = (a: LogView["numbers"], b: LogView["numbers"]): boolean =>
  a?.size === b?.size && [...(a ?? [])].every(([roomId, n]) => b?.get(roomId) === n);

const writeOn = (log: LogView, timeZone: string, { lines, pen }: Written): Written => {
  let { room, speaker, speakers, date, minute } = { ...pen, speakers: new Set(pen.speakers) };
  const added = log.entries.slice(lines.length).map((entry) => {
    const { source, at, element: shown } = entry;
    let before = "";
    if (source !== "ephemeris" && source !== room) {
      before = roomLine(source, log);
      [room, speaker, speakers] = [source, undefined, new Set()];
    }
    const { sender } = shown.attributes;
    const isMessage = shown.name === "message";
    const isSameSender = isMessage && sender !== undefined && sender === speaker;
    if (isMessage && sender !== undefined) speakers.add(sender);
    // Nobody's words stand below the name of another who only did something.
    if (isMessage ? sender !== undefined || speakers.size > 1 : sender !== undefined && sender !== speaker)
      speaker = isMessage ? sender : undefined;
    const time = at && clockTime(at, timeZone);
    const isNow = !time || (time.date === date && time.minute === minute);
    const stamp = isNow ? "" : time.date === date ? time.minute : `${time.date} ${time.minute}`;
    if (time) ({ date, minute } = time);
    return { entry, text: before + textOf(entry, stamp, isSameSender) };
  });
  return { timeZone, lines: [...lines, ...added], pen: { room, speaker, speakers, date, minute } };
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
