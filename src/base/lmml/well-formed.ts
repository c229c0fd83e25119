import { escapeText, findForbidden, findStrayReference } from "./escape.ts";
import { visible } from "./visible.ts";
import { isBooleanAttribute, isElementName, maxDepth, namePattern, requiredAttributes } from "./vocabulary.ts";

/** The text is not LMML: the message says what is wrong, and at which line and column. */
export class LmmlError extends Error {
  override readonly name = "LmmlError";
}

/** In characters. */
const maxLength = 1_000_000;

const space = "[ \\t\\r\\n]";
const blank = new RegExp(`^${space}*$`);
const tag = new RegExp(`<(/?)(${namePattern})([^<>]*?)(/?)>`, "y");
const attribute = new RegExp(`${space}+(${namePattern})(?:${space}*=${space}*("[^"]*"|'[^']*'))?`, "y");
const endOfTag = new RegExp(`${space}*>`, "y");

const matchAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at;
  return pattern.exec(text);
};

class Reader {
  readonly #text: string;
  readonly #open: { readonly name: string; hasText: boolean; hasElements: boolean }[] = [];
  #hasBegun = false;
  #out = "";

  constructor(text: string) {
    this.#text = text;
  }

  read(): string {
    const text = this.#text;
    if (text.length > maxLength) throw new LmmlError(`The text is longer than ${maxLength} characters`);
    const forbidden = findForbidden(text);
    if (forbidden >= 0) throw this.#problem(forbidden, `LMML cannot carry ${visible(text.charAt(forbidden))}`);
    let at = 0;
    while (at < text.length) {
      const next = text.indexOf("<", at);
      const end = next < 0 ? text.length : next;
      if (end > at) this.#readText(at, end);
      at = next < 0 ? end : this.#readMarkup(next);
    }
    const unclosed = this.#open.at(-1);
    if (unclosed) throw this.#problem(at, `<${unclosed.name}> is not closed`);
    if (!this.#hasBegun) throw this.#problem(0, "There is no element");
    return this.#out;
  }

  #readText(at: number, end: number): void {
    const chunk = this.#text.slice(at, end);
    this.#out += chunk;
    if (blank.test(chunk)) return;
    const parent = this.#open.at(-1);
    if (!parent) throw this.#problem(at, "Text outside of the element");
    if (parent.hasElements) throw this.#problem(at, `Text beside elements in <${parent.name}>`);
    parent.hasText = true;
    this.#checkReferences(chunk, at);
    if (chunk.includes("]]>")) throw this.#problem(at + chunk.indexOf("]]>"), "]]> must be written ]]&gt;");
  }

  /** Returns where to read on, as all below that return a number. */
  #readMarkup(at: number): number {
    const text = this.#text;
    if (text.startsWith("<!--", at)) {
      const end = text.indexOf("-->", at + 4);
      if (end < 0) throw this.#problem(at, "The comment is not closed");
      return end + 3;
    }
    if (text[at + 1] === "!" || text[at + 1] === "?")
      throw this.#problem(at, "Declarations, CDATA and processing instructions are not allowed");
    const match = matchAt(tag, text, at);
    if (!match) throw this.#problem(at, "This is no tag: < and > that belong to text must be written &lt; and &gt;");
    const [whole, closing, name = "", attributes = "", empty] = match;
    this.#out += whole;
    if (closing) return this.#closeElement(name, `${attributes}${empty}`, at, whole.length);
    const isRaw = this.#openElement(name, attributes, at);
    if (empty) this.#open.pop();
    return isRaw && !empty ? this.#readRaw(name, at + whole.length) : at + whole.length;
  }

  #openElement(name: string, attributes: string, at: number): boolean {
    if (!isElementName(name)) throw this.#problem(at, `<${name}> cannot be the name of an element`);
    const parent = this.#open.at(-1);
    if (!parent && this.#hasBegun)
      throw this.#problem(at, `<${name}> is a second element: there must be one around all`);
    if (parent?.hasText) throw this.#problem(at, `Text beside elements in <${parent.name}>`);
    if (this.#open.length === maxDepth) throw this.#problem(at, `Elements in one another deeper than ${maxDepth}`);
    if (parent) parent.hasElements = true;
    this.#hasBegun = true;
    this.#open.push({ name, hasText: false, hasElements: false });
    return this.#readAttributes(name, attributes, at + 1 + name.length);
  }

  #closeElement(name: string, rest: string, at: number, length: number): number {
    const expected = this.#open.pop()?.name;
    if (name !== expected || !blank.test(rest))
      throw this.#problem(
        at,
        `</${name}${rest.trim() && " …"}> stands where ${expected ? `</${expected}>` : "nothing"} is expected`,
      );
    return at + length;
  }

  /** Returns whether the content is raw. */
  #readAttributes(element: string, source: string, at: number): boolean {
    const values = new Map<string, string | undefined>();
    let end = 0;
    for (let match = matchAt(attribute, source, end); match; match = matchAt(attribute, source, end)) {
      const [whole, name = "", quoted] = match;
      if (values.has(name)) throw this.#problem(at + end, `<${element}> has the attribute ${name} twice`);
      const value = quoted?.slice(1, -1);
      if (value !== undefined) this.#checkReferences(value, at + end);
      if (value !== undefined && isBooleanAttribute(name) && value !== "yes" && value !== "true")
        throw this.#problem(at + end, `The attribute ${name} is there or not: it can have no value but "yes"`);
      values.set(name, value);
      end += whole.length;
    }
    if (!blank.test(source.slice(end)))
      throw this.#problem(at + end, `<${element}> has something that is no attribute (name="value")`);
    for (const name of requiredAttributes(element))
      if (values.get(name) === undefined) throw this.#problem(at, `<${element}> needs the attribute ${name}="…"`);
    return values.has("raw");
  }

  #readRaw(name: string, at: number): number {
    const closing = `</${name}`;
    let end = this.#text.indexOf(closing, at);
    while (end >= 0 && !matchAt(endOfTag, this.#text, end + closing.length))
      end = this.#text.indexOf(closing, end + closing.length);
    if (end < 0) throw this.#problem(at, `<${name} raw> is not closed`);
    this.#out += escapeText(this.#text.slice(at, end));
    return end;
  }

  #checkReferences(source: string, at: number): void {
    const stray = findStrayReference(source);
    if (stray >= 0)
      throw this.#problem(
        at,
        `${source.slice(stray, stray + 12)} is no reference that is known: & must be written &amp;`,
      );
  }

  #problem(at: number, message: string): LmmlError {
    const lines = this.#text.slice(0, at).split("\n");
    return new LmmlError(`${message} (line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1})`);
  }
}

/**
 * Checks that the text is one LMML element, and gives it back as XML: without comments, raw content escaped.
 * Takes time in proportion to the length.
 */
export const makeWellFormed = (text: string): string => new Reader(text).read();
