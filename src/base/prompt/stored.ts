import { type Element, element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { render } from "../lmml/render.ts";
import { fitInto } from "./list-part.ts";

/** The most characters of an element in the database: what is longer is cut when it is written, and says so. */
const storedMost = 200_000;

/** Writes an element as it is kept in a row, in so many characters that it can be read again. */
export const toStored = (kept: Element): string => {
  const whole = render(kept);
  if (whole.length <= storedMost) return whole;
  const cut = render(fitInto(kept, storedMost, 0));
  return cut.length <= storedMost
    ? cut
    : render(stub(`Something stood here that was too long to be kept: ${whole.length} characters.`));
};

/** Reads an element that is kept in a row. One that cannot be read is shown as a stub: it must not end a turn. */
export const fromStored = (text: string): Element => {
  try {
    return parse(text);
  } catch {
    return stub(`Something stood here that cannot be read any more: ${text.length} characters.`);
  }
};

const stub = (why: string): Element => element("systemEvent", { timestamp: "unknown" }, why);
