import type { RoomId } from "../../base/lib/ids.ts";
import { memoEach } from "../../base/lib/memo.ts";
import type { Element } from "../../base/lmml/element.ts";
import { lasting } from "../../base/lmml/render.ts";
import { fitted } from "../../base/prompt/list-part.ts";
import { logDepth, logEntryMax, shellChars } from "../../base/prompt/log-pieces.ts";
import { sizeAt } from "../../base/prompt/measure.ts";
import type { LogPiece } from "../../base/prompt/types.ts";
import type { LogState } from "../../domain/tables/steps.ts";

/** An event or an entry of the ephemeris, with its place among those of its source. */
export interface LogItem {
  readonly source: LogPiece["source"];
  readonly position: number;
  /** By the database's clock: what a sender says of the time decides nothing here. */
  readonly arrivedAt: Date;
  readonly element: Element;
  /** Shown as new in this turn: it comes to the log with the next. */
  readonly fresh: boolean;
}

interface Logging {
  /** The turn that is shown the log. */
  readonly turnId: number;
  readonly here: RoomId;
  readonly charsMax: number;
  /** The most characters that it may take; beyond them it is cut to half of that. */
  readonly max: number;
  /** Sources of which as much was read as ever is: older items may not have been read. */
  readonly full: ReadonlySet<LogPiece["source"]>;
}

/**
 * Moves the log on by the new items, and returns what it shows and the state from which the next one begins.
 * @param items in the order of their places, source by source
 */
export function advance(
  state: LogState,
  items: readonly LogItem[],
  logging: Logging,
): { pieces: LogPiece[]; next: LogState } {
  const kept = items.filter((item) => item.position > beginning(state.from, item.source));
  const earlier = state.marks.filter((mark) => mark.turn !== logging.turnId);
  const marks = [...earlier, { turn: logging.turnId, to: reached(kept, earlier) }];
  const max = logEntryMax(logging.charsMax);
  const shown = kept.map((item) => ({ ...item, element: entryOf(item.element, max) }));
  const from = cut(shown, marks, state.from, logging);
  const inLog = shown.filter((item) => item.position > beginning(from, item.source));
  const pieces = piecesOf(inLog, marks, logging.here);
  const alive = marks.filter(({ to }) =>
    Object.entries(to).some(([source, position]) => position > beginning(from, source)),
  );
  return { pieces, next: { from, marks: alive } };
}

/** An element as it stands in the log, in at most `max` characters. */
const entryOf = memoEach((whole: Element, max: number): Element => lasting(fitted(whole, max, logDepth)));

const beginning = (from: LogState["from"], source: string): number => from[source] ?? Number.NEGATIVE_INFINITY;

/** Up to where each source is shown that has something newer than the last mark of it. */
const reached = (items: readonly LogItem[], marks: LogState["marks"]): Record<string, number> => {
  const to: Record<string, number> = {};
  for (const { source, position } of items) to[source] = Math.max(to[source] ?? 0, position);
  return Object.fromEntries(Object.entries(to).filter(([source, position]) => position > lastMark(marks, source)));
};

const lastMark = (marks: LogState["marks"], source: string): number =>
  marks.findLast((mark) => mark.to[source] !== undefined)?.to[source] ?? Number.NEGATIVE_INFINITY;

/** Where the log begins in each source: as before while it fits, otherwise with the newer half of what may be there. */
const cut = (
  shown: readonly LogItem[],
  marks: LogState["marks"],
  from: LogState["from"],
  { max, full }: Logging,
): Record<string, number> => {
  const result: Record<string, number> = { ...from };
  for (const [source, ofSource] of Map.groupBy(shown, (item) => item.source)) {
    // Of a source that was never shown, what is older than was read stays out for good; of one that has come to hold
    // as much as is read, the older half: otherwise the log would begin elsewhere each time.
    if (result[source] === undefined) result[source] = before(ofSource[0]?.position ?? 0);
    else if (full.has(source))
      result[source] = ofSource[Math.floor(ofSource.length / 2) - 1]?.position ?? result[source];
  }
  const sized = sizesOf(shown, marks);
  if (sized.reduce((sum, { chars }) => sum + chars, 0) <= max) return result;
  let left = max / 2;
  for (const { item, chars } of sized) {
    left -= chars;
    if (left < 0) result[item.source] = Math.max(result[item.source] ?? 0, item.position);
  }
  return result;
};

/**
 * Characters that each entry adds to the log, the newest first: the last of a piece adds also what is written around
 * the piece.
 */
const sizesOf = (shown: readonly LogItem[], marks: LogState["marks"]): { item: LogItem; chars: number }[] => {
  const begun = new Set<string>();
  return [...newestFirst(shown)].map((item) => {
    if (item.fresh) return { item, chars: 0 };
    const { source, position } = item;
    const piece = `${marks.findIndex(({ to }) => position <= (to[source] ?? Number.NEGATIVE_INFINITY))} ${source}`;
    const shell = begun.has(piece) ? 0 : shellChars(source);
    begun.add(piece);
    return { item, chars: sizeAt(item.element, logDepth) + shell };
  });
};

/** Each source from its last place backwards; sources among each other as what is next in them has arrived. */
function* newestFirst<Item extends LogItem>(items: readonly Item[]): Generator<Item> {
  const left = Map.groupBy(items, ({ source }) => source);
  for (;;) {
    const [next] = [...left.values()].flatMap((ofSource) => ofSource.at(-1) ?? []).toSorted(byArrival);
    if (!next) return;
    left.get(next.source)?.pop();
    yield next;
  }
}

const byArrival = (a: LogItem, b: LogItem): number =>
  b.arrivedAt.getTime() - a.arrivedAt.getTime() || b.position - a.position;

/** A place just before another: nothing can lie between them. */
const before = (position: number): number => position - Math.max(1e-9, Math.abs(position) * Number.EPSILON * 2);

/**
 * Groups the items by the mark that they came with: the conversation's own room last, since it goes on to grow while
 * the others do not.
 */
const piecesOf = (shown: readonly LogItem[], marks: LogState["marks"], here: RoomId): LogPiece[] => {
  const left = Map.groupBy(shown, (item) => item.source);
  return marks.flatMap(({ to }) => {
    const sources = Object.keys(to) as LogPiece["source"][];
    const ordered = sources.toSorted((a, b) => Number(a === here) - Number(b === here) || (a < b ? -1 : 1));
    return ordered.flatMap((source) => {
      const items = left.get(source) ?? [];
      const behind = items.findIndex(({ position }) => position > (to[source] ?? 0));
      const count = behind < 0 ? items.length : behind;
      const elements = items.splice(0, count).flatMap(({ element, fresh }) => (fresh ? [] : [element]));
      return elements.length > 0 ? [{ source, elements }] : [];
    });
  });
};

/** Ids of calls by which the agent has said something in one of the rooms: what was said stands there already. */
export const saidIn = (entries: readonly Element[], rooms: ReadonlySet<string>): ReadonlySet<unknown> =>
  new Set(entries.filter((entry) => isSaid(entry, rooms)).map(({ attributes }) => attributes.id));

const isSaid = ({ name, children }: Element, rooms: ReadonlySet<string>): boolean =>
  name === "functionResult" &&
  typeof children !== "string" &&
  children.some(
    (result) =>
      typeof result.children !== "string" &&
      result.children.some(
        ({ name: what, attributes }) =>
          what === "message" && attributes.sent === true && rooms.has(String(attributes.roomId)),
      ),
  );
