import type { Json } from "../../adapters/database/connection.ts";
import { blank, Repeats } from "../../base/lib/repeats.ts";
import type { Element } from "../../base/lmml/element.ts";
import { parse } from "../../base/lmml/parse.ts";
import { render } from "../../base/lmml/render.ts";
import type { Seen } from "../../domain/tables/sight.ts";

/** Attributes that name something: no words of people stand in them. */
const names = new Set(["id", "function", "timestamp", "roomId", "eventId", "windowId"]);

const contentOf = ({ children }: Element): string =>
  typeof children === "string" ? children : children.map(contentOf).join("\n");

/** An element with each text blanked that repeats redacted words; the element itself where none does. */
function blankElement(element: Element, repeats: Repeats): Element {
  const attributes = Object.entries(element.attributes).map(([name, value]) =>
    typeof value === "string" && !names.has(name) && repeats.in(value) ? [name, blank] : [name, value],
  );
  const hasChanged = attributes.some(([name, value]) => element.attributes[name as string] !== value);
  const children = repeats.in(contentOf(element)) ? blankedChildren(element.children, repeats) : element.children;
  if (!hasChanged && children === element.children) return element;
  return { ...element, attributes: Object.fromEntries(attributes), children };
}

/** Blanks children; several may repeat together what none repeats alone. */
function blankedChildren(children: Element["children"], repeats: Repeats): Element["children"] {
  if (typeof children === "string") return blank;
  const blanked = children.map((child) => blankElement(child, repeats));
  return repeats.in(blanked.map(contentOf).join("\n")) ? blank : blanked;
}

/** Blanks a text that repeats redacted words; of LMML and JSON, the texts in it that do. */
function blankedText(text: string, repeats: Repeats): string {
  if (text.startsWith("<")) {
    const element = tryTo(() => parse(text));
    const blanked = element && blankElement(element, repeats);
    if (blanked && blanked !== element) return render(blanked);
    if (element) return text;
  }
  if (/^[[{]/.test(text)) {
    const value = tryTo(() => JSON.parse(text) as Json);
    const blanked = value === undefined ? undefined : blankJson(value, repeats);
    if (blanked !== undefined && blanked !== value) return JSON.stringify(blanked);
    if (value !== undefined) return text;
  }
  return repeats.in(text) ? blank : text;
}

/** A JSON value with each text blanked that repeats redacted words; the value itself where none does. */
export function blankJson(value: Json, repeats: Repeats): Json {
  if (typeof value === "string") return blankedText(value, repeats);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value) as [string, Json][];
  const blanked = entries.map(([name, inner]) => [name, blankJson(inner, repeats)] as const);
  const items = blanked.map(([, inner]) => inner);
  if (Array.isArray(value) && repeats.in(items.filter((item) => typeof item === "string").join("\n")))
    return items.map((item) => (typeof item === "string" ? blank : item));
  if (items.every((item, index) => item === entries[index]?.[1])) return value;
  return Array.isArray(value) ? items : Object.fromEntries(blanked);
}

const tryTo = <Result>(work: () => Result): Result | undefined => {
  try {
    return work();
  } catch {
    return undefined;
  }
};

/**
 * Blanks words that were redacted since the turn began in the texts that the turn has made; see `blankRepetitions`, which
 * may come only after this look.
 */
export function withoutRedacted<
  Made extends Pick<Seen, "todos"> & { readonly entries: readonly Element[]; readonly ephemeris: readonly Element[] },
>(made: Made, redacted: Seen["redacted"]): Made {
  if (redacted.length === 0) return made;
  const repeats = new Repeats(redacted);
  const blanked = (elements: readonly Element[]) => elements.map((one) => blankElement(one, repeats));
  const todos = made.todos.map((todo) => (repeats.in(todo.name) ? { ...todo, name: blank } : todo));
  return { ...made, entries: blanked(made.entries), ephemeris: blanked(made.ephemeris), todos };
}

/** Leaves out texts that repeat words that were redacted since the turn began. */
export const notRedacted = <Text extends { readonly text: string }>(
  texts: readonly Text[],
  redacted: Seen["redacted"],
): readonly Text[] => {
  const repeats = new Repeats(redacted);
  return texts.filter(({ text }) => !repeats.in(text));
};
