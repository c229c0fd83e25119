import { hash } from "node:crypto";
import { lineStarts } from "./lines.ts";

/** Fingerprints of a text's words: they find the text again without keeping it. */
export interface Fingerprint {
  /** Different for each text: equal words of two texts have different prints. */
  readonly salt: string;
  readonly prints: readonly string[];
}

/** Takes the place of words that are blanked. It has no word itself. */
export const blank = "█████";

/** Scripts without spaces between words: each of their characters counts as half a word. */
const unspaced = ["Han", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr"].map((script) => `\\p{scx=${script}}`).join("");
/** Longest word, in characters; what goes on is another. A search without end for the end of one ends the engine's stack. */
const wordCharsMost = 1_000;
const letters = `[[\\p{L}\\p{M}\\p{N}]--[[${unspaced}]&&\\p{L}]]`;
const word = new RegExp(`[[${unspaced}]&&\\p{L}]|${letters}{1,${wordCharsMost}}`, "gv");
const half = new RegExp(`^[[${unspaced}]&&\\p{L}]$`, "v");

/** Half words in a row that repeat a text: five words. */
const runLength = 10;
/** Shortest text that is looked for as a whole, in characters; the second: one that has a digit. */
const charsLeast = 5;
const charsLeastWithDigit = 4;
/** Words of one text that are looked for. */
const wordsMost = 20_000;

interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly length: 1 | 2;
}

const wordsIn = (text: string): Word[] =>
  Array.from(text.matchAll(word), ({ 0: found, index: start }) => ({
    text: found.normalize("NFKC").toLowerCase(),
    start,
    end: start + found.length,
    length: half.test(found) ? 1 : 2,
  }));

/** Index behind the shortest run of words from `from` on that is long enough; undefined where the words end before. */
const runFrom = (words: readonly Word[], from: number): number | undefined => {
  let length = 0;
  for (let at = from; at < words.length; at++) {
    length += words[at]?.length ?? 0;
    if (length >= runLength) return at + 1;
  }
  return undefined;
};

const printOf = (salt: string, words: readonly Word[], from: number, to: number): string => {
  let text = salt;
  for (let at = from; at < to; at++) text += ` ${words[at]?.text}`;
  return hash("sha256", text, "base64url").slice(0, 10);
};

/**
 * True if a text has all of these words, each as a whole, in any order and case. What stands together, such as an address,
 * stands together in the text.
 */
export function hasWords(text: string, words: string): boolean {
  const joined = (found: readonly Word[]) => ` ${found.map((one) => one.text).join(" ")} `;
  const said = joined(wordsIn(text));
  return words.split(/\s+/).every((part) => {
    const sought = wordsIn(part);
    return sought.length === 0 || said.includes(joined(sought));
  });
}

/** True if a text has a word. */
export const hasAnyWord = (text: string): boolean => wordsIn(text).length > 0;

/** A short text has one print, which names how many words it has. */
const printWhole = (salt: string, words: readonly Word[], from: number, count: number): string =>
  `${count}:${printOf(salt, words, from, from + count)}`;

const saysEnough = (words: readonly Word[]): boolean => {
  const text = words.map((one) => one.text).join("");
  const chars = words.reduce((sum, one) => sum + (one.length === 1 ? 2 : one.text.length), 0);
  return chars >= (/\p{N}/u.test(text) ? charsLeastWithDigit : charsLeast);
};

/** Makes prints of each run of words in these texts, and of a shorter text as a whole; none of words in `except`. */
export function printsOf(texts: readonly string[], salt: string, except: readonly string[] = []): string[] {
  const known = new Set(except.length > 0 ? printsOf(except, salt) : []);
  const prints = texts.flatMap((text) => {
    const words = wordsIn(text).slice(0, wordsMost);
    if (runFrom(words, 0) === undefined) return saysEnough(words) ? [printWhole(salt, words, 0, words.length)] : [];
    return words.flatMap((_, from) => {
      const to = runFrom(words, from);
      return to === undefined ? [] : [printOf(salt, words, from, to)];
    });
  });
  const other = new Repeats([{ salt, prints: [...new Set(prints)].filter((print) => print.includes(":")) }]);
  const stands = except.some((text) => other.in(text));
  return [...new Set(prints)].filter((print) => !known.has(print) && !(stands && print.includes(":")));
}

/** Finds where texts repeat the words of others: five in a row, or the whole of a shorter one. */
export class Repeats {
  readonly #sought: readonly { salt: string; prints: ReadonlySet<string>; counts: readonly number[] }[];

  constructor(fingerprints: readonly Fingerprint[]) {
    this.#sought = fingerprints.map(({ salt, prints }) => ({
      salt,
      prints: new Set(prints),
      counts: [...new Set(prints.filter((print) => print.includes(":")).map((print) => Number.parseInt(print, 10)))],
    }));
  }

  in(text: string): boolean {
    return !this.#each(text, () => false);
  }

  /** Blanks each line that is part of a repetition, except the lines in `kept`. */
  blankLines(text: string, kept: ReadonlySet<string> = new Set()): string {
    const blanked = this.#blankOnce(text, kept);
    // Words before and behind a blanked line stand side by side now.
    return blanked === text ? text : this.blankLines(blanked, kept);
  }

  #blankOnce(text: string, kept: ReadonlySet<string>): string {
    const spans: [number, number][] = [];
    this.#each(text, (start, end) => {
      spans.push([start, end]);
      return true;
    });
    if (spans.length === 0) return text;
    spans.sort(([a], [b]) => a - b);
    const starts = [...lineStarts(text), text.length];
    let next = 0;
    let reached = -1;
    return starts
      .slice(0, -1)
      .map((start, index) => {
        const line = text.slice(start, starts[index + 1]);
        for (let span = spans[next]; span && span[0] < start + line.length; span = spans[++next])
          reached = Math.max(reached, span[1]);
        const content = line.replace(/[\r\n]+$/, "");
        return reached > start && content.trim() !== "" && !kept.has(content)
          ? blank + line.slice(content.length)
          : line;
      })
      .join("");
  }

  /** Calls `found` with each repetition, until it returns false. Returns true if it never did. */
  #each(text: string, found: (start: number, end: number) => boolean): boolean {
    if (this.#sought.length === 0) return true;
    const words = wordsIn(text);
    for (const { salt, prints, counts } of this.#sought) {
      const hasRuns = prints.size > counts.length;
      for (const [from, { start }] of words.entries()) {
        const runEnd = hasRuns ? runFrom(words, from) : undefined;
        const isRun = runEnd !== undefined && prints.has(printOf(salt, words, from, runEnd));
        if (isRun && !found(start, words[runEnd - 1]?.end ?? start)) return false;
        for (const count of counts) {
          const end = words[from + count - 1]?.end;
          if (end !== undefined && prints.has(printWhole(salt, words, from, count)) && !found(start, end)) return false;
        }
      }
    }
    return true;
  }
}
