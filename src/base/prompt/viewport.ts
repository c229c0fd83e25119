import { lineStarts } from "../lib/lines.ts";
import type { Element } from "../lmml/element.ts";
import { beginning, textChars } from "./measure.ts";

/** The part of a content that a window shows: `height` lines from line `top` on, which counts from 1. */
export interface Viewport {
  readonly top: number;
  readonly height: number;
}

/** The most lines that a viewport can have. */
export const heightMax = 10_000;

const whole = (value: number, most: number): number => Math.min(Math.max(1, Math.trunc(value) || 1), Math.max(1, most));

/** The nearest viewport that shows as many of `lines` lines as it can. */
export const clamp = ({ top, height }: Viewport, lines: number): Viewport => {
  const fitting = whole(height, heightMax);
  return { top: whole(top, lines - fitting + 1), height: fitting };
};

/** Part of a content that is seen through a viewport. */
export interface Excerpt {
  /** Texts with their line ends, or elements, each of which is a line. */
  readonly shown: string | readonly Element[];
  /** Number of the first line; 0 where there is none. */
  readonly top: number;
  readonly bottom: number;
  /** The limit of characters was reached before the viewport's end. */
  readonly isTruncated: boolean;
}

/** Content that a window is opened on, prepared to be shown in parts. */
export interface Content {
  readonly lines: number;
  readonly chars: number;
  /** The viewport is clamped. Takes time in proportion to what is shown, not to the whole. */
  excerpt(viewport: Viewport, charsMax: number): Excerpt;
}

/** One of which everything is at hand. */
export interface WholeContent extends Content {
  /** All of it, or its beginning. */
  text(charsMax: number): string;
}

const nothing: Excerpt = { shown: "", top: 0, bottom: 0, isTruncated: false };

/**
 * Makes excerpts of whole lines as long as one fits; of a line that is longer than `charsMax`, its beginning.
 * @param starts of the lines in `text`, which is the beginning of a text of `lines` lines
 */
const excerptsOf = (text: string, starts: readonly number[], lines: number): Content["excerpt"] => {
  const end = (line: number) => starts[line] ?? text.length;
  return (viewport, charsMax) => {
    if (lines === 0) return nothing;
    const { top, height } = clamp(viewport, lines);
    const from = starts[top - 1] ?? 0;
    const last = Math.min(lines, top + height - 1);
    let bottom = last;
    while (bottom > top && end(bottom) - from > charsMax) bottom = Math.max(top, Math.floor((top + bottom) / 2));
    while (bottom < last && end(bottom + 1) - from <= charsMax) bottom += 1;
    const shown = beginning(text.slice(from, end(bottom)), charsMax);
    return { shown, top, bottom, isTruncated: bottom < last || from + shown.length < end(bottom) };
  };
};

export const textContent = (text: string): WholeContent => {
  const starts = lineStarts(text);
  return {
    lines: starts.length,
    chars: text.length,
    text: (charsMax) => beginning(text, charsMax),
    excerpt: excerptsOf(text, starts, starts.length),
  };
};

/**
 * A text of `whole.lines` and `whole.chars` of which only `text`, its beginning, is at hand; undefined where the
 * viewport shows more than that.
 */
export const partialContent = (
  text: string,
  whole: { readonly lines: number; readonly chars: number },
  viewport: Viewport,
  charsMax: number,
): Content | undefined => {
  const starts = lineStarts(text);
  const { top, height } = clamp(viewport, whole.lines);
  // The last line that begins in it may go on behind it.
  const from = starts[top - 1];
  if (from === undefined) return undefined;
  if (top + height > starts.length && text.length - from <= charsMax + 1) return undefined;
  const { lines, chars } = whole;
  return { lines, chars, excerpt: excerptsOf(text, starts, lines) };
};

/** Each element is a line. */
export const elementContent = (elements: readonly Element[]): WholeContent => ({
  lines: elements.length,
  chars: elements.reduce((chars, each) => chars + textChars(each), 0),
  text(charsMax) {
    const texts: string[] = [];
    const collect = ({ attributes, children }: Element): void => {
      if (typeof children !== "string") for (const child of children) collect(child);
      else texts.push([attributes.path, attributes.line, children].filter((part) => part !== undefined).join(" "));
    };
    for (const each of elements) collect(each);
    return beginning(texts.join("\n"), charsMax);
  },
  excerpt(viewport, charsMax) {
    if (elements.length === 0) return { ...nothing, shown: [] };
    const { top, height } = clamp(viewport, elements.length);
    const seen = elements.slice(top - 1, top - 1 + height);
    let count = 0;
    for (let chars = 0; count < seen.length; count += 1) {
      const next = seen[count];
      chars += next ? textChars(next) : 0;
      if (count > 0 && chars > charsMax) break;
    }
    return { shown: seen.slice(0, count), top, bottom: top + count - 1, isTruncated: count < seen.length };
  },
});
