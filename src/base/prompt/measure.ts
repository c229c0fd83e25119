import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";

/** Spaces by which the renderer indents each level. */
const indent = 2;

/** Characters that an element adds to a render in which it stands `depth` levels below the root. */
export const sizeAt = (shown: Element, depth: number): number => render(shown, depth).length + indent * depth + 1;

/** Characters of all texts in an element. A render is never shorter. */
export const textChars = ({ children }: Element): number =>
  typeof children === "string" ? children.length : children.reduce((chars, child) => chars + textChars(child), 0);

/** `sizeAt` where that is at most `limit`, otherwise more than `limit`; a long text is not rendered for it. */
export const sizeUpTo = (shown: Element, depth: number, limit: number): number =>
  textChars(shown) > limit ? limit + 1 : sizeAt(shown, depth);

const wholeCharacters = (text: string, end: number): string =>
  text.slice(0, /[\uD800-\uDBFF]/.test(text.charAt(end - 1)) ? end - 1 : end);

/** The first `max` characters at most, never half of a surrogate pair. */
export const beginning = (text: string, max: number): string =>
  text.length <= max ? text : wholeCharacters(text, Math.max(0, max));

/**
 * The beginning of a text, ending in `…`, for which `sizeOf` is at most `max`; empty if there is none.
 * `sizeOf` grows with the text, by at least one for each character. The result is about as long as it can be where
 * what has to be escaped is spread evenly, otherwise shorter. Takes time in proportion to `max`, for each of a few tries.
 */
export const shorten = (text: string, max: number, sizeOf: (candidate: string) => number): string =>
  longest(text, max, sizeOf, (chars) => `${wholeCharacters(text, chars)}…`);

const gap = "\n[…]\n";

/** Like `shorten`, but with the end of the text as well: the middle is left out, and `[…]` stands there. */
export const shortenMiddle = (text: string, max: number, sizeOf: (candidate: string) => number): string =>
  longest(text, max, sizeOf, (chars) => {
    const half = Math.ceil(chars / 2);
    return `${wholeCharacters(text, half)}${gap}${wholeEnd(text, text.length - (chars - half))}`;
  });

const wholeEnd = (text: string, start: number): string =>
  text.slice(/[\uDC00-\uDFFF]/.test(text.charAt(start)) ? start + 1 : start);

/** The first candidate that fits; each next one is made of fewer characters of the text. */
const longest = (
  text: string,
  max: number,
  sizeOf: (candidate: string) => number,
  candidateOf: (chars: number) => string,
): string => {
  const bare = sizeOf("");
  const room = max - bare;
  for (let chars = Math.min(text.length, room); chars > 0; ) {
    const candidate = candidateOf(chars);
    const size = sizeOf(candidate) - bare;
    if (size <= room) return candidate;
    chars = Math.floor((chars * room) / size);
  }
  return "";
};

const attributeSize = (value: string): number => render(element("roomMember", { userId: value })).length - 24;

/** A name or an id as an attribute: cut with `…` where it would take more than `max` characters in the markup. */
export const clip = (value: string, max = 255): string => {
  const fits = value.length <= max && (/^[\w !$#@:./=~+-]*$/.test(value) || attributeSize(value) <= max);
  return fits ? value : shorten(value, max, attributeSize);
};

/** The highest level at which `sizes`, each cut down to it, take no more than `total`: short ones stay whole. */
export const level = (sizes: readonly number[], total: number): number => {
  let left = total;
  for (const [index, size] of sizes.toSorted((a, b) => a - b).entries()) {
    const fair = left / (sizes.length - index);
    if (size > fair) return Math.floor(fair);
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
};
