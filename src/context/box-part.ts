import type { Element } from "../lmml/element.ts";
import type { Shown } from "./list-part.ts";
import { sizeAt } from "./measure.ts";
import type { Part } from "./part.ts";
import { share } from "./share.ts";

interface BoxOptions<Item> {
  /** Levels between the root and these elements. */
  readonly depth: number;
  /** The most that is ever asked for: what is beyond it is not measured. */
  readonly limit: number;
  /** The element with nothing in it that could be left out. */
  readonly shell: (item: Item) => Element;
  /** Its content, beyond the shell. */
  readonly part: (item: Item) => Part<Element>;
  /** How much of what there is it gets beside the others. */
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
  const parts: Part<Element>[] = [];
  for (const item of items) {
    if (asked > limit) break;
    const content = part(item);
    parts.push(content);
    asked += content.wanted;
  }

  const cut = (max: number): Shown => {
    let left = max;
    let count = 0;
    for (const least of leasts) {
      if (least > left) break;
      left -= least;
      count += 1;
    }
    const measured = parts.slice(0, count);
    const given = share(
      measured.map(({ wanted }) => wanted),
      left,
      items.slice(0, measured.length).map(weight),
    );
    const elements = items.slice(0, count).map((item, index) => parts[index]?.cut(given[index] ?? 0) ?? shell(item));
    return { elements, reach: count, leftOut: items.length - count };
  };
  return { wanted: Math.min(limit, asked), cut };
};
