import type { Element } from "../lmml/element.ts";
import { beginning, level, shorten, sizeAt } from "./measure.ts";

/**
 * A piece of the prompt that can be cut to size. `cut(0)` is its least form, which is always shown; `cut(max)` takes
 * at most `max` characters more; from `max = wanted` on it is whole.
 */
export interface Part<Shown> {
  readonly wanted: number;
  readonly cut: (max: number) => Shown;
}

const mark = "… [truncated]";

/** Text that stands outside of any element. */
export const plainPart = (text: string): Part<string> => {
  const wanted = Math.max(0, text.length - mark.length);
  return { wanted, cut: (max) => (max >= wanted ? text : beginning(text, max) + mark) };
};

/** One element around a text. `build` is given what is left of the text, and whether that is less than the whole. */
export const textPart = (
  text: string,
  depth: number,
  build: (text: string, isTruncated: boolean) => Element,
): Part<Element> => {
  const least = sizeAt(build("", text !== ""), depth);
  const whole = build(text, false);
  const wanted = Math.max(0, sizeAt(whole, depth) - least);
  const cutTo = (max: number) => shorten(text, max, (candidate) => sizeAt(build(candidate, true), depth));
  return { wanted, cut: (max) => (max >= wanted ? whole : build(cutTo(least + max), true)) };
};

/** Several parts as one: what there is goes to all alike, and what one does not need to the others. */
export const manyParts = <Each>(parts: readonly Part<Each>[]): Part<Each[]> => {
  const wants = parts.map((part) => part.wanted);
  return {
    wanted: wants.reduce((total, want) => total + want, 0),
    cut: (max) => {
      const most = level(wants, max);
      return parts.map((part) => part.cut(most));
    },
  };
};
