import { visible } from "../../base/lmml/visible.ts";
import { beginning } from "../../base/prompt/measure.ts";

/** Longer runs of blanks are shown as a count: no indentation needs so many. */
const blanksMost = 40;
const blankLinesMost = 3;
/** Longer lines are broken: in a block of code people would have to scroll to their ends. */
const widthMost = 160;

// The blank pattern of Braille is no space by its name, but shows nothing.
const blank = String.raw`[^\S\n]|\u2800`;
const blankRun = new RegExp(`(?:${blank}){${blanksMost + 1},}`, "g");
const blankLines = new RegExp(`^(?:(?:${blank})*\n){${blankLinesMost + 1},}`, "gm");
const widePieces = new RegExp(`.{1,${widthMost}}`, "gsu");

/** Text from elsewhere, so that nobody who looks through it misses a part: all of it can be seen, and blanks take no room. */
export const showText = (text: string): string =>
  visible(text)
    .replace(blankLines, (lines) => `‹${lines.split("\n").length - 1} blank lines›\n`)
    .replace(blankRun, (run) => `‹${run.length} blanks›`)
    .split("\n")
    .map((line) => (line.length > widthMost ? (line.match(widePieces) ?? []).join("\n↪ ") : line))
    .join("\n");

/** The first and the last lines of a text that has more than `most` of them. */
export function endsOf(text: string, most: number): string {
  const lines = text.split("\n");
  if (lines.length <= most) return text;
  const head = Math.ceil(most / 2);
  const tail = lines.length - Math.floor(most / 2);
  return [...lines.slice(0, head), `‹${tail - head} lines are left out here›`, ...lines.slice(tail)].join("\n");
}

/** Cut in the middle: the end of a text says as much as its beginning. */
export function clipMiddle(text: string, most: number): string {
  if (text.length <= most) return text;
  const end = text.slice(-Math.floor(most / 3)).replace(/^[\uDC00-\uDFFF]/, "");
  return `${beginning(text, most - end.length - 1)}…${end}`;
}

const lineMost = 300;

/** Text from elsewhere on one line, clipped. */
export const lineOf = (text: string, most = lineMost): string =>
  clipMiddle(visible(text).replaceAll(/\s+/g, " ").trim(), most);

/** Text from elsewhere on one line, as code: nothing in it is a link, a mention or markup. */
export function quote(text: string, most = lineMost): string {
  const line = lineOf(text, most);
  const fence = "`".repeat(Math.max(0, ...[...line.matchAll(/`+/g)].map(([run]) => run.length)) + 1);
  return /^`|`$|^$/.test(line) ? `${fence} ${line} ${fence}` : `${fence}${line}${fence}`;
}
