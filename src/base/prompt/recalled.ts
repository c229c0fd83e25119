import type { RoomId, UserId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { type Element, element } from "../lmml/element.ts";
import { clockTime, shortName } from "./lean.ts";
import { listPart, type Shown } from "./list-part.ts";
import { beginning, clip } from "./measure.ts";
import type { Part } from "./part.ts";
import type { PassageView, RecalledView } from "./recalled-view.ts";
import { eventTime, localTime } from "./time.ts";

/** Longest text of one that is shown, in characters. */
const textMost = 600;
/** Longest passage of knowledge that is shown unasked, in characters: a whole section. */
const passageMost = 1_500;

/** Writes the answer of memory to a question, the best first. */
const ragResults = (recalled: readonly RecalledView[]): Element =>
  element(
    "ragResults",
    {},
    recalled.map((one) => scored(one.score, memoryElement(one))),
  );

/** Result of a question to memory, as a tool gives it: elements for a model, a list for a person. */
export const tellRecalled = (
  recalled: readonly RecalledView[],
  { by, timeZone }: { readonly by: "model" | "person"; readonly timeZone: string },
): { readonly result: Element | string; readonly isVerbatim?: boolean } => {
  if (recalled.length === 0) return { result: "Nothing is remembered about it that everybody here may read." };
  if (by === "model") return { result: ragResults(recalled) };
  return { result: recalled.map((one) => lineFor(one, timeZone)).join("\n"), isVerbatim: true };
};

const lineFor = ({ at, sender, text }: RecalledView, timeZone: string): string =>
  `${localTime(at, timeZone).slice(0, 16)}, ${sender}: ${beginning(text.replace(/\s+/g, " "), textMost)}`;

/** Part of the footer of a room; the best are shown first. `write`: how each is shown. */
export const recalledPart = (
  recalled: readonly RecalledView[],
  write: (recalled: RecalledView) => Element,
  depth: number,
  limit: number,
): Part<Shown> =>
  listPart(
    recalled.map((one) => scored(one.score, write(one))),
    { depth, limit, keep: "first" },
  );

/** Footer of a room, with what is recalled for its new events. */
export const roomFooter = (
  attributes: Element["attributes"],
  { elements }: Pick<Shown, "elements"> = { elements: [] },
): Element =>
  element("roomFooter", attributes, [elements.length > 0 ? element("ragResults", {}, elements) : undefined]);

/** Knowledge that was found. */
interface FoundPassage extends PassageView, Pick<RecalledView, "at" | "score" | "text"> {}

/** Result of a search in the knowledge, as a tool gives it: elements for a model, a list for a person. */
export const tellPassages = (
  found: readonly FoundPassage[],
  { by, timeZone }: { readonly by: "model" | "person"; readonly timeZone: string },
): { readonly result: Element | string; readonly isVerbatim?: boolean } => {
  if (found.length === 0) return { result: "There is no knowledge about it that everybody here may read." };
  if (by === "model")
    return {
      result: element(
        "ragResults",
        {},
        found.map((one) => scored(one.score, knowledgeElement(one, one.at, one.text))),
      ),
    };
  const lines = found.map((one) => {
    const place = one.firstLine === null ? "" : `, lines ${linesOf(one)}`;
    const age = `${localTime(one.at, timeZone).slice(0, 10)}${one.isOutdated ? ", the file has changed since" : ""}`;
    return `${one.score.toFixed(2)}  ${one.source}${place} (${age})\n${one.text}`;
  });
  return { result: lines.join("\n\n"), isVerbatim: true };
};

const linesOf = ({ firstLine, lastLine }: PassageView): string =>
  lastLine === null || lastLine === firstLine ? `${firstLine}` : `${firstLine}-${lastLine}`;

const knowledgeElement = (passage: PassageView, at: Date, text: string): Element =>
  element(
    "knowledge",
    {
      source: clip(passage.source),
      lines: passage.firstLine === null ? undefined : linesOf(passage),
      timestamp: eventTime(at),
      outdated: passage.isOutdated,
    },
    text,
  );

const scored = (score: number, of: Element): Element => element("ragResult", { score: score.toFixed(4) }, [of]);

/** A memory as the layout `seed` shows it. */
export const memoryElement = ({ at, eventId, kind, passage, roomId, sender, text }: RecalledView): Element => {
  if (passage) return knowledgeElement(passage, at, beginning(text, passageMost));
  const place = { roomId: clip(roomId), timestamp: eventTime(at) };
  const shown = shortened(text);
  if (eventId !== null) return element("message", { ...place, eventId: clip(eventId), sender: clip(sender) }, shown);
  return element("memory", { ...place, kind }, shown);
};

const shortened = (text: string): string => (text.length > textMost ? `${text.slice(0, textMost)} …` : text);

/** Where memories are read: by whom, in which room, and in which time zone. */
interface Reading {
  readonly self: UserId;
  readonly here: RoomId | undefined;
  readonly timeZone: string;
}

/** A memory without what goes without saying: the room that it is read in, our server, seconds. */
export const leanMemory = (recalled: RecalledView, { here, self, timeZone }: Reading): Element => {
  const { at, eventId, kind, number, passage, roomId, sender, text } = recalled;
  if (passage) return memoryElement(recalled);
  const { date, minute } = clockTime(at, timeZone);
  const place = { roomId: roomId === here ? undefined : clip(roomId), timestamp: `${date} ${minute}` };
  if (eventId === null) return element("memory", { ...place, kind }, shortened(text));
  const by = sender === self ? { sent: true } : { sender: shortName(sender, splitUserId(self).server) };
  return element("message", { id: number ?? clip(eventId), ...place, ...by }, shortened(text));
};
