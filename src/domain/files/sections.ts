import { lineStarts } from "../../base/lib/lines.ts";

const sectionMax = 1_500;

/**
 * Cuts a text into sections of at most 1,500 characters: at headings, then between paragraphs, then lines, then words;
 * small neighbours stay together. Nothing but the white space around them is lost.
 */
export function sectionsOf(text: string): string[] {
  const chapters = text.split(/^(?=#{1,6} )/m);
  return chapters.flatMap((chapter) => pack(chapter, borders)).filter((section) => section !== "");
}

/** Each ends what stands before it; the last ones cut where nothing better is found. */
const borders = [/(?<=\n\s*\n)/, /(?<=\n)/, /(?<=\s)/, new RegExp(`(?<=^(?:.{${sectionMax}})+)`, "su")];

function pack(text: string, [border, ...finer]: readonly RegExp[]): string[] {
  if (text.length <= sectionMax || !border) return [text.trim()];
  const sections: string[] = [];
  let current = "";
  for (const part of text.split(border)) {
    if (current.length + part.length <= sectionMax) {
      current += part;
      continue;
    }
    sections.push(current.trim());
    current = "";
    if (part.length <= sectionMax) current = part;
    else sections.push(...pack(part, finer));
  }
  return [...sections, current.trim()];
}

/** Section of a text, with the lines in which it begins and ends. */
export interface Section {
  readonly text: string;
  readonly lines: { readonly first: number; readonly last: number };
}

/** Cuts a text like `sectionsOf`, and finds the lines of each section. */
export function sectionsWithLines(text: string): Section[] {
  const starts = lineStarts(text);
  let at = 0;
  let line = 0;
  return sectionsOf(text).map((section) => {
    at = text.indexOf(section, at);
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) <= at) line += 1;
    const first = line + 1;
    at += section.length;
    while ((starts[line + 1] ?? Number.POSITIVE_INFINITY) < at) line += 1;
    return { text: section, lines: { first, last: line + 1 } };
  });
}
