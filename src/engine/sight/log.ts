import type { RoomId } from "../../base/lib/ids.ts";
import { memo, memoEach } from "../../base/lib/memo.ts";
import { type Element, element } from "../../base/lmml/element.ts";
import { fitInto } from "../../base/prompt/list-part.ts";
import { logEntryMax, logHead, logLines } from "../../base/prompt/log.ts";
import { beginning as beginningOf, textChars } from "../../base/prompt/measure.ts";
import type { LogEntry, LogView } from "../../base/prompt/types.ts";
import type { PreparedCut } from "../../domain/tables/log-summary.ts";
import type { LogState } from "../../domain/tables/steps.ts";

/** An event or an entry of the ephemeris, with its place among those of its source. */
export interface LogItem {
  readonly position: number;
  /** By the database's clock: what a sender says of the time decides nothing here. */
  readonly arrivedAt: Date;
  readonly entry: LogEntry;
}

interface Logging {
  readonly here: RoomId;
  readonly charsMax: number;
  readonly timeZone: string;
  /** The most characters that it may take; beyond them it is cut to half of that. */
  readonly max: number;
  /** Sources of which as much was read as ever is: older items may not have been read. */
  readonly full: ReadonlySet<LogEntry["source"]>;
  /** See `roomNumbers`. */
  readonly numbers?: ReadonlyMap<RoomId, number>;
  /** The log as the conversation was shown it last, if that is remembered. */
  readonly before?: LogView | undefined;
}

export const emptyLog: LogState = { from: {}, leftOut: [], brief: 0 };

/** Share of a log that is cut which is kept for the conversation's own room, however much is said elsewhere. */
const ownShare = 0.5;

/** The next cut of a log, and the lines that it leaves out, to be summarised. */
export interface Leaving {
  readonly cut: Omit<PreparedCut, "summary">;
  readonly lines: string;
  /** Summary of those before them. */
  readonly former: string | undefined;
}

/** Share of its room from which on the next cut of a log is prepared, and of that the part that it is to be cut to then. */
const nearShare = 0.85;
const nearMax = 0.7;

/**
 * Moves the log on: returns what it shows of the items, and the state from which the next one begins. Lines stand in the
 * order in which they arrived, so it only grows until it is cut: as it was prepared, or else to half of its room.
 */
export function advance(
  state: LogState,
  items: readonly LogItem[],
  logging: Logging,
): { log: LogView; next: LogState; leaving?: Leaving } {
  const { max } = logging;
  const begun = withBeginnings(state, items, logging);
  const before = shown(items, begun, logging);
  const whole = viewOf(before, begun, logging);
  const size = sizeOf(whole, logging);
  const isNear = size > max * nearShare && begun.prepared === undefined;
  if (size <= max)
    return { log: whole, next: begun, ...(isNear && { leaving: prepare(before, items, begun, logging) }) };
  const cut = begun.prepared && cutAs(begun, begun.prepared);
  const log = cut && viewOf(shown(items, cut, logging), cut, logging);
  if (cut && log && sizeOf(log, logging) <= max) return { log, next: cut };
  const next = { ...halved(items, begun, logging), cuts: (begun.cuts ?? 0) + 2, summary: begun.summary };
  return { log: viewOf(shown(items, next, logging), next, logging), next };
}

const prepare = (before: readonly LogItem[], items: readonly LogItem[], state: LogState, logging: Logging): Leaving => {
  const { from, leftOut = [], brief = 0 } = halved(items, state, { ...logging, max: logging.max * nearMax });
  const gone = before.filter(({ entry, position }) => position <= (from[entry.source] ?? Number.NEGATIVE_INFINITY));
  const lines = logLines(viewOf(gone, { ...state, summary: undefined }, logging), logging.timeZone);
  return {
    cut: { from, leftOut, brief, cuts: (state.cuts ?? 0) + 1 },
    lines: lines.map(({ text }) => text).join(""),
    former: state.summary?.text,
  };
};

const cutAs = (state: LogState, { from, leftOut, brief, cuts, summary }: PreparedCut): LogState => ({
  from: { ...state.from, ...from },
  leftOut: [...new Set([...(state.leftOut ?? []), ...leftOut])],
  brief: Math.max(brief, state.brief ?? 0),
  cuts,
  summary,
});

/** Items that the log shows, in its order. */
const shown = (items: readonly LogItem[], { from, brief = 0 }: LogState, { charsMax }: Logging): LogItem[] => {
  const most = logEntryMax(charsMax);
  return items
    .filter(({ entry, position }) => position > (from[entry.source] ?? Number.NEGATIVE_INFINITY))
    .toSorted((a, b) => a.arrivedAt.getTime() - b.arrivedAt.getTime() || bySource(a, b))
    .map((item) => {
      const isOld = item.entry.source === "ephemeris" && item.position <= brief;
      const entry = sized(isOld ? inBrief(item.entry) : item.entry, most);
      return entry === item.entry ? item : { ...item, entry };
    });
};

const bySource = (a: LogItem, b: LogItem): number =>
  a.entry.source === b.entry.source ? a.position - b.position : a.entry.source < b.entry.source ? -1 : 1;

/** An entry in at most `max` characters. */
const sized = memoEach((entry: LogEntry, max: number): LogEntry => {
  const cut = fitInto(entry.element, max, 0);
  return cut === entry.element ? entry : { ...entry, element: cut };
});

/** Characters of a result beyond which it is old for more than its beginning. */
const briefChars = 120;

/** A result as it stands in a log that was cut: its beginning. The ephemeris has the whole. */
const inBrief = memo((entry: LogEntry): LogEntry => {
  const { name, attributes } = entry.element;
  const { id, operation } = attributes;
  const chars = textChars(entry.element);
  if (name !== "functionResult" || chars <= briefChars) return entry;
  const [line = ""] = beginningOf(textOf(entry.element), briefChars).trimStart().split("\n");
  return { ...entry, element: element(name, { id, operation, chars, truncated: true }, `${line}…`) };
});

const textOf = ({ attributes, children }: Element): string => {
  if (typeof children === "string") return children;
  const inner = children.map(textOf).join(" ");
  return inner.trim() === "" ? String(attributes.windowId ?? attributes.path ?? "") : inner;
};

const viewOf = (items: readonly LogItem[], { leftOut, summary }: LogState, { numbers }: Logging): LogView => ({
  entries: items.map(({ entry }) => entry),
  leftOut: new Set(leftOut as LogEntry["source"][]),
  ...(summary && { summary: { text: summary.text, isTainted: summary.taint.length > 0 } }),
  ...(numbers && { numbers }),
});

const sizeOf = (log: LogView, { before, timeZone }: Logging): number =>
  logHead(log).length + logLines(log, timeZone, before).reduce((chars, { text }) => chars + text.length, 0);

/**
 * Fixes where the log begins in each source, so that it does not begin elsewhere each time. Entries older than the first
 * that was read of a new source stay out for good; so does the older half of a source that fills all that is read.
 */
const withBeginnings = (state: LogState, items: readonly LogItem[], { full }: Logging): LogState => {
  const from = { ...state.from };
  const leftOut = new Set(state.leftOut);
  for (const [source, ofSource] of Map.groupBy(items, ({ entry }) => entry.source)) {
    const places = ofSource.map(({ position }) => position).toSorted((a, b) => a - b);
    if (full.has(source)) leftOut.add(source);
    if (from[source] === undefined) from[source] = before(places[0] ?? 0);
    else if (full.has(source)) from[source] = places[Math.floor(places.length / 2) - 1] ?? from[source];
  }
  return { ...state, from, leftOut: [...leftOut] };
};

/**
 * The log without its older half. The newest of the conversation's own room come first, so that they are there however
 * much was said elsewhere; then the newest of all. Results that stay are shown in brief from now on.
 */
const halved = (items: readonly LogItem[], state: LogState, logging: Logging): LogState => {
  const { here, max, timeZone } = logging;
  const brief = Math.max(
    state.brief ?? 0,
    ...items.flatMap(({ entry, position }) => (entry.source === "ephemeris" ? [position] : [])),
  );
  const shortened = { ...state, brief };
  const inOrder = shown(items, shortened, logging);
  const chars = logLines(viewOf(inOrder, shortened, logging), timeZone).map(({ text }) => text.length);
  const newest = inOrder.map((item, index) => ({ ...item, chars: chars[index] ?? 0 })).toReversed();
  const kept = new Set<(typeof newest)[number]>();
  let left = max / 2;
  const keep = (candidates: typeof newest, least: number): void => {
    for (const item of candidates) {
      if (left - item.chars < least) return;
      left -= item.chars;
      kept.add(item);
    }
  };
  const isOwn = ({ entry }: LogItem): boolean => entry.source === here;
  keep(newest.filter(isOwn), left * (1 - ownShare));
  keep(
    newest.filter((item) => !kept.has(item)),
    0,
  );
  const from = { ...state.from };
  const leftOut = new Set(state.leftOut);
  for (const { entry, position } of newest.filter((item) => !kept.has(item))) {
    from[entry.source] = Math.max(from[entry.source] ?? position, position);
    leftOut.add(entry.source);
  }
  return { from, leftOut: [...leftOut], brief };
};

/** A place just before another: nothing can lie between them. */
const before = (position: number): number => position - Math.max(1e-9, Math.abs(position) * Number.EPSILON * 2);

/** A call by which something was said in a room, and the words. */
export interface SaidCall {
  readonly id: unknown;
  readonly text: string;
}

/** Calls by which the agent has said something in one of the rooms: what was said stands there already. */
export const findSaid = (entries: readonly Element[], rooms: ReadonlySet<string>): SaidCall[] =>
  entries.flatMap((entry) => {
    const sent = entry.name === "functionResult" ? sentIn(entry, rooms) : undefined;
    return sent ? [{ id: entry.attributes.id, text: typeof sent.children === "string" ? sent.children : "" }] : [];
  });

const sentIn = ({ children }: Element, rooms: ReadonlySet<string>): Element | undefined =>
  typeof children === "string"
    ? undefined
    : children
        .flatMap((result) => (typeof result.children === "string" ? [] : result.children))
        .find(
          ({ name, attributes: { sent, roomId } }) => name === "message" && sent === true && rooms.has(String(roomId)),
        );
