import type { EventId } from "../lib/ids.ts";
import { flat } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { eventIdsIn } from "./layout-frame.ts";
import { clip, sizeAt } from "./measure.ts";
import { historyWindowId } from "./room.ts";
import type { LogPiece } from "./types.ts";

/** Levels between a piece of the log and its entries. */
export const logDepth = 2;

/** The most that one entry takes in the log, in characters, for a conversation of `charsMax`. */
export const logEntryMax = (charsMax: number): number => Math.floor(charsMax / 20);

/** A piece of the log as it stands in the prompt. */
export interface WrittenPiece extends LogPiece {
  readonly text: string;
  readonly eventIds: readonly EventId[];
}

/** Pieces as they were last written, by their first entries. */
const known = new WeakMap<Element, WrittenPiece>();

const written = (piece: LogPiece): WrittenPiece => {
  const { source, elements } = piece;
  const [first] = elements;
  const before = first && known.get(first);
  if (before?.source === source && isSame(before.elements, elements)) return before;
  const shown = pieceElement(piece);
  const now = { ...piece, text: flat(`${render(shown)}\n\n`), eventIds: eventIdsIn(shown) };
  if (first) known.set(first, now);
  return now;
};

const isSame = (some: readonly Element[], others: readonly Element[]): boolean =>
  some.length === others.length && some.every((one, index) => one === others[index]);

const pieceElement = ({ source, elements }: LogPiece): Element => {
  const windowId = source === "ephemeris" ? source : clip(historyWindowId(source), 64);
  const attributes = {
    srcType: "chatHistory",
    src: clip(source),
    contentType: "text/lmml",
    pinned: true,
    system: true,
  };
  return element("window", { windowId, ...attributes }, [element("content", {}, elements)]);
};

const anyEntry = element("thought", { timestamp: "" });

/** Characters of a piece beside its entries. */
export const shellChars = (source: LogPiece["source"]): number =>
  render(pieceElement({ source, elements: [anyEntry] })).length + 2 - sizeAt(anyEntry, logDepth);

/**
 * The newest end of a log, in at most `room` characters. What is left out grows by whole steps, counted from the log's
 * beginning: so the next renders begin alike.
 */
export const newestEnd = (pieces: readonly LogPiece[], room: number, step: number): WrittenPiece[] => {
  const all = pieces.map(written);
  const over = all.reduce((chars, { text }) => chars + text.length, 0) - room;
  let surplus = over > 0 ? Math.ceil(over / step) * step : 0;
  return all.flatMap((piece) => {
    if (surplus <= 0) return [piece];
    const before = surplus;
    surplus -= piece.text.length;
    return surplus >= 0 ? [] : (withoutFirst(piece, before) ?? []);
  });
};

/** A piece without as many of its first entries as have `chars` characters together; undefined where that is all. */
const withoutFirst = (piece: LogPiece, chars: number): WrittenPiece | undefined => {
  let left = chars;
  const elements = piece.elements.filter((entry) => {
    if (left <= 0) return true;
    left -= sizeAt(entry, logDepth);
    return false;
  });
  return elements.length > 0 ? written({ ...piece, elements }) : undefined;
};
