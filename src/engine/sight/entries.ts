import { memo } from "../../base/lib/memo.ts";
import type { Element } from "../../base/lmml/element.ts";
import { keepRendered } from "../../base/lmml/render.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import type { EntryRow } from "../../domain/tables/sight.ts";

/** An entry of the ephemeris as it was made. */
export const elementOf = memo(({ entry }: EntryRow) => keepRendered(fromStored(entry)));

/** Removes the mark that a text was said: only a log needs it. */
export const plainThought = memo((element: Element): Element => {
  const { roomId: _, sent, ...attributes } = element.attributes;
  return element.name === "thought" && sent ? keepRendered({ ...element, attributes }) : element;
});
