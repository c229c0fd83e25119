import type { Element } from "../lmml/element.ts";
import { level, shorten, shortenMiddle, sizeAt, sizeUpTo } from "./measure.ts";
import type { Part } from "./part.ts";

/** Part of a list that is shown, in the order of time, and the number of elements that are not. */
export interface Shown {
  readonly elements: readonly Element[];
  /** Number of elements between the kept end and the farthest one shown. */
  readonly reach: number;
  readonly leftOut: number;
  /** Elements above the list. */
  readonly above?: readonly Element[];
}

/**
 * Characters that an element may gain with its first child: its closing tag, and the numbers of the lines that it
 * shows.
 */
export const containerChars = 100;

interface ListOptions {
  /** Levels between the root and these elements. */
  readonly depth: number;
  /** The most that is ever asked for: what is beyond it is not measured. */
  readonly limit: number;
  /** End that is kept when not all fit. */
  readonly keep: "first" | "last";
  /** An element is left out rather than cut to less than this, unless it is the only one. */
  readonly floor?: number;
  /** Elements at the kept end that are cut only where all others have been cut to `floor`. Default: all are cut alike. */
  readonly spared?: number;
  /** True if texts that are cut keep their ends. Default: those of results of tools. */
  readonly isCutInMiddle?: boolean | undefined;
}

export interface ListPart extends Part<Shown> {
  /** From so many characters on no element is left out. */
  readonly least: number;
}

/** Elements side by side: the long ones are cut before any is left out. */
export const listPart = (elements: readonly Element[], options: ListOptions): ListPart => {
  const { depth, limit, keep, floor = 600, spared = 0, isCutInMiddle } = options;
  const inOrder = keep === "first" ? (shown: Element[]) => shown : (shown: Element[]) => shown.toReversed();
  const candidate = (index: number) => elements[keep === "first" ? index : elements.length - 1 - index];

  const sizes: number[] = [];
  let least = 0;
  while (least <= limit) {
    const next = candidate(sizes.length);
    if (next === undefined) break;
    const size = sizeUpTo(next, depth, limit);
    sizes.push(size);
    least += Math.min(size, floor);
  }
  const sum = sizes.reduce((total, size) => total + size, 0);

  const cut = (max: number): Shown => {
    const room = Math.min(max, limit) - containerChars;
    let count = 0;
    for (let taken = 0; count < sizes.length; count += 1) {
      taken += Math.min(sizes[count] ?? 0, floor);
      if (taken > room) break;
    }
    const kept = sizes.slice(0, Math.max(count, room > 0 ? 1 : 0));
    const [first, others] = [kept.slice(0, spared), kept.slice(spared)];
    const firstMost = level(first, room - others.reduce((total, size) => total + Math.min(size, floor), 0));
    const othersMost = level(others, room - first.reduce((total, size) => total + Math.min(size, firstMost), 0));
    const shown = kept.flatMap((size, index) => {
      const whole = candidate(index);
      const most = index < spared ? firstMost : othersMost;
      const fitted = whole === undefined || size <= most ? whole : trim(whole, most, { depth, isCutInMiddle });
      return fitted === undefined ? [] : [fitted];
    });
    return {
      elements: inOrder(shown),
      reach: shown.length > 0 ? kept.length : 0,
      leftOut: elements.length - shown.length,
    };
  };
  const inAll = (chars: number) => (chars === 0 ? 0 : Math.min(limit, chars + containerChars));
  return { wanted: inAll(sum), least: inAll(least), cut };
};

/** An element in at most `max` characters if its tags fit into that, whole or marked where something of it is missing. */
export const fitInto = (whole: Element, max: number, depth: number): Element =>
  sizeAt(whole, depth) <= max ? whole : (trim(whole, max, { depth }) ?? { ...whole, children: [] });

/** Results of tools are cut in the middle: errors stand at their end. */
const isResult = ({ name }: Element): boolean => name === "functionResult";

/** An element in at most `max` characters, marked where something of it is missing; undefined if its tags do not fit. */
export const trim = (
  whole: Element,
  max: number,
  { depth, isCutInMiddle = isResult(whole) }: Pick<ListOptions, "depth" | "isCutInMiddle">,
): Element | undefined => {
  const { name, attributes, children } = whole;
  const cut = (rest: Element["children"]): Element => ({
    name,
    attributes: { ...attributes, truncated: true },
    children: rest,
  });
  const left = max - sizeAt(cut([]), depth);
  if (left < 0) return undefined;
  const shortened = isCutInMiddle ? shortenMiddle : shorten;
  if (typeof children === "string") return cut(shortened(children, max, (candidate) => sizeAt(cut(candidate), depth)));
  const inner = { depth: depth + 1, limit: left, keep: "first", floor: 150, isCutInMiddle } as const;
  return cut(listPart(children, inner).cut(left).elements);
};
