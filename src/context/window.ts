import { type Element, element } from "../lmml/element.ts";
import type { Shown } from "./list-part.ts";
import { clip } from "./measure.ts";
import { type Part, textPart } from "./part.ts";
import type { FileView } from "./types.ts";

/** Lines as a person counts them: a final line end begins no further line, and empty text has none. */
export const lineCount = (text: string): number => {
  const ends = text.match(/\r\n|\r|\n/g)?.length ?? 0;
  return text === "" || /[\r\n]$/.test(text) ? ends : ends + 1;
};

/** A file, shown whole as far as it fits. `states` are attributes by presence, in their order. */
export const fileWindow = (
  windowId: string,
  file: FileView,
  states: readonly ("pinned" | "maximized" | "system")[],
  depth: number,
): Part<Element> => {
  const lines = lineCount(file.text);
  return textPart(file.text, depth, (text, truncated) => {
    const bottom = truncated ? lineCount(text) : 0;
    return element(
      "window",
      {
        windowId,
        srcType: "file",
        src: clip(file.path, 200),
        contentType: clip(file.contentType, 64),
        lines,
        chars: file.text.length,
        topLineNumber: bottom > 0 ? 1 : undefined,
        bottomLineNumber: bottom > 0 ? bottom : undefined,
        ...Object.fromEntries(states.map((state) => [state, true])),
        truncated,
      },
      [element("content", { raw: true }, text)],
    );
  });
};

/** Size of a history that is longer than what is shown of it. One line is one entry. */
export interface HistorySize {
  readonly lines: number;
  readonly chars: number;
}

/** Attributes of a window on a history that shows its newest entries. */
export const historyWindow = (windowId: string, src: string, { lines, chars }: HistorySize, shown: Shown) => ({
  windowId,
  srcType: "chatHistory",
  src,
  contentType: "text/lmml",
  lines,
  chars,
  topLineNumber: shown.reach > 0 ? lines - shown.reach + 1 : undefined,
  bottomLineNumber: shown.reach > 0 ? lines : undefined,
  pinned: true,
  system: true,
  truncated: shown.leftOut > 0,
});
