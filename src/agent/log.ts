import { logDepth, logEntryMax } from "../context/cacheable.ts";
import { fitted } from "../context/list-part.ts";
import { sizeAt } from "../context/measure.ts";
import type { LogPiece } from "../context/types.ts";
import type { LogState } from "../database/steps.ts";
import type { RoomId } from "../lib/ids.ts";
import { memoEach } from "../lib/memo.ts";
import type { Element } from "../lmml/element.ts";
import { lasting } from "../lmml/render.ts";

/** What a conversation's log may take of the characters of its context; beyond it, it is cut to half of that. */
const logShare = 0.55;

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
  /** A source with this many items may have older ones that were not read. */
  readonly most: number;
}

/**
 * What the conversation's log shows now, and what is to be remembered so that the next one begins with the same.
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
  const from = cut(shown, state.from, logging);
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
  from: LogState["from"],
  { charsMax, most }: Logging,
): Record<string, number> => {
  const result: Record<string, number> = { ...from };
  for (const [source, ofSource] of Map.groupBy(shown, (item) => item.source)) {
    // Of a source that was never cut, or has more than was read, what is older stays out for good.
    const first = ofSource[0]?.position ?? 0;
    if (result[source] === undefined || ofSource.length >= most) result[source] = before(first);
  }
  const max = Math.floor(charsMax * logShare);
  const sized = shown.map((item) => ({ ...item, chars: sizeAt(item.element, logDepth) }));
  if (sized.reduce((sum, { chars }) => sum + chars, 0) <= max) return result;
  let left = max / 2;
  for (const { source, position, chars } of newestFirst(sized)) {
    left -= chars;
    if (left < 0) result[source] = Math.max(result[source] ?? 0, position);
  }
  return result;
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

/** What came with each mark: the conversation's own room last, since it goes on to grow while the others do not. */
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
