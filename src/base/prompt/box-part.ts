import type { Element } from "../lmml/element.ts";
import type { Shown } from "./list-part.ts";
import { sizeAt } from "./measure.ts";
import type { Part } from "./part.ts";
import { share } from "./share.ts";

interface BoxOptions<Item> {
  /** Levels between the root and these elements. */
  readonly depth: number;
  /** The most that is ever asked for. What is beyond twice as much is not measured: there only the shells are shown. */
  readonly limit: number;
  /** The element with nothing in it that could be left out. */
  readonly shell: (item: Item) => Element;
  /** Its content, beyond the shell. */
  readonly part: (item: Item) => Part<Element>;
  /** Share of the room that it gets beside the others. */
  readonly weight: (item: Item) => number;
}

/**
 * Elements with content, such as rooms and windows: first that each of them is there, as many as fit, then what is in
 * them, each by its weight.
 */
export const boxPart = <Item>(
  items: readonly Item[],
  { depth, limit, shell, part, weight }: BoxOptions<Item>,
): Part<Shown> => {
  const leasts: number[] = [];
  let asked = 0;
  for (const item of items) {
    if (asked > limit) break;
    const least = sizeAt(shell(item), depth);
    leasts.push(least);
    asked += least;
  }
  const fitting = items.slice(0, leasts.length);
  const weights = fitting.map(weight);
  const parts: (Part<Element> | undefined)[] = fitting.map(() => undefined);
  const order = [...weights.keys()].sort((a, b) => (weights[b] ?? 0) - (weights[a] ?? 0));
  for (const index of order) {
    if (asked > 2 * limit) break;
    const content = fitting[index] && part(fitting[index]);
    parts[index] = content;
    asked += content?.wanted ?? 0;
  }

  const cut = (max: number): Shown => {
    let left = max;
    let count = 0;
    for (const least of leasts) {
      if (least > left) break;
      left -= least;
      count += 1;
    }
    const wants = parts.slice(0, count).map((content) => content?.wanted ?? 0);
    const given = share(wants, left, weights);
    const elements = fitting.slice(0, count).map((item, index) => parts[index]?.cut(given[index] ?? 0) ?? shell(item));
    return { elements, reach: count, leftOut: items.length - count };
  };
  return { wanted: Math.min(limit, asked), cut };
};
