import type { EventId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import { containerChars, type ListPart, listPart, type Shown, trim } from "./list-part.ts";
import { sizeUpTo } from "./measure.ts";

/** A new event as it is written. */
export interface NewsItem {
  readonly eventId: EventId;
  readonly element: Element;
  /** True if it gives way to the others: the agent has dealt with it, or need not be shown it. */
  readonly isKnown: boolean;
}

/** New events that are shown, and those that wait for the next look. */
interface ShownNews extends Shown {
  readonly waiting: readonly EventId[];
}

export interface NewsPart extends Omit<ListPart, "cut"> {
  readonly cut: (max: number) => ShownNews;
}

interface NewsOptions {
  /** Levels between the root and these elements. */
  readonly depth: number;
  /** The most that is ever asked for: what is beyond it is not measured. */
  readonly limit: number;
}

/**
 * New events side by side, each of them whole. Where not all fit, the oldest that are not known come first, and the
 * others wait; of the known ones the newest come first. Only an event that does not even fit alone is cut.
 */
export const newsPart = (items: readonly NewsItem[], { depth, limit }: NewsOptions): NewsPart => {
  const { wanted, least } = listPart(
    items.map(({ element }) => element),
    { depth, limit, keep: "last" },
  );
  const fresh = items.filter(({ isKnown }) => !isKnown);
  const inTurn = [...fresh, ...items.filter(({ isKnown }) => isKnown).toReversed()];
  const cut = (max: number): ShownNews => {
    const room = Math.min(max, limit) - containerChars;
    const shown = new Map<NewsItem, Element>();
    let left = room;
    for (const item of inTurn) {
      const size = sizeUpTo(item.element, depth, limit);
      if (size > left) break;
      left -= size;
      shown.set(item, item.element);
    }
    const [first] = inTurn;
    const part = first && shown.size === 0 ? trim(first.element, room, { depth }) : undefined;
    if (first && part) shown.set(first, part);
    const elements = items.flatMap((item) => shown.get(item) ?? []);
    // One of which not even the tags fit is passed over.
    const waiting = fresh.slice(Math.max(1, shown.size)).map(({ eventId }) => eventId);
    return { elements, reach: elements.length, leftOut: items.length - elements.length, waiting };
  };
  return { wanted, least, cut };
};
