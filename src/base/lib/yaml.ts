import { type Document, LineCounter, parseDocument } from "yaml";
import { messageOf, UserError } from "./errors.ts";

/** Parses YAML with its comments. Mistakes are told with file, line and column, and never with the text itself. */
export const parseYaml = (text: string, file: string): Document => {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: false });
  const mistakes = [...document.errors, ...document.warnings].map(({ message, pos }) => {
    const { line, col } = lineCounter.linePos(pos[0]);
    return `line ${line}, column ${col}: ${message}`;
  });
  if (mistakes.length === 0) mistakes.push(...unreadable(document));
  if (mistakes.length === 0) return document;
  const hint = "Text that begins with @, !, *, & or % needs double quotes.";
  throw new UserError([`${file} is not valid YAML:`, ...mistakes.map((line) => `  ${line}`), hint].join("\n"));
};

/** Finds mistakes that only show when the document becomes values: aliases that name nothing, or too much. */
const unreadable = (document: Document): string[] => {
  try {
    document.toJS();
    return [];
  } catch (error) {
    return [messageOf(error)];
  }
};
