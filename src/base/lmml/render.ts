import type { Element } from "./element.ts";
import { escapeAttribute, escapeText } from "./escape.ts";
import { visible } from "./visible.ts";
import {
  elementNames,
  isAttributeName,
  isBooleanAttribute,
  isElementName,
  maxDepth,
  requiredAttributes,
} from "./vocabulary.ts";

/**
 * Matches a tag of the vocabulary or a text that could be taken for one: in any case, with blanks or strokes where none
 * belong; and every tag with a character that may only look like one of a name, or not be seen at all.
 */
const tagLike = new RegExp(`<[\\s/\\\\!?]*(?:(?:${elementNames.join("|")})\\b|[\\w.-]*[^\\x00-\\x7F])`, "i");

const canStayRaw = (name: string, text: string): boolean => !tagLike.test(text) && !text.includes(`</${name}`);

const check = ({ name, attributes }: Element): void => {
  if (!isElementName(name)) throw new Error(`LMML: "${name}" cannot be the name of an element`);
  for (const needed of requiredAttributes(name))
    if (typeof attributes[needed] !== "string" && typeof attributes[needed] !== "number")
      throw new Error(`LMML: <${name}> needs the attribute ${needed}`);
  for (const attribute of Object.keys(attributes)) {
    const value = attributes[attribute];
    if (!isAttributeName(attribute))
      throw new Error(`LMML: "${attribute}" cannot be the name of an attribute of <${name}>`);
    if (isBooleanAttribute(attribute) && value !== undefined && typeof value !== "boolean")
      throw new Error(`LMML: the attribute ${attribute} of <${name}> is there or not, it has no value`);
  }
};

const startTag = ({ name, attributes }: Element, isRaw: boolean): string => {
  let tag = `<${name}`;
  for (const attribute of Object.keys(attributes)) {
    const value = attributes[attribute];
    if (value === undefined || value === false || (attribute === "raw" && !isRaw)) continue;
    tag += value === true ? ` ${attribute}` : ` ${attribute}="${escapeAttribute(visible(String(value)))}"`;
  }
  return tag;
};

const tooDeep = (): Error => new Error(`LMML: elements stand in one another deeper than ${maxDepth}`);

/** Texts of elements that are shown again and again, by their depth. */
const written = new WeakMap<Element, string[]>();

/** An element that is shown again and again, and never changes: it is written once. Returns it. */
export const keepRendered = (element: Element): Element => {
  if (!written.has(element)) written.set(element, []);
  return element;
};

const renderAt = (depth: number, element: Element): string => {
  const texts = written.get(element);
  if (!texts) return write(depth, element);
  // Within an element that holds text nothing is indented.
  const place = typeof element.children === "string" ? 0 : depth;
  texts[place] ??= write(depth, element);
  return texts[place];
};

const write = (depth: number, element: Element): string => {
  check(element);
  const { name, attributes, children } = element;
  const wantsRaw = attributes.raw === true;
  if (children.length === 0) return `${startTag(element, wantsRaw)} />`;
  if (typeof children === "string") {
    const text = visible(children);
    const isRaw = wantsRaw && canStayRaw(name, text);
    return `${startTag(element, isRaw)}>${isRaw ? text : escapeText(text)}</${name}>`;
  }
  if (depth === maxDepth) throw tooDeep();
  const indent = `\n${"  ".repeat(depth - 1)}`;
  let inner = "";
  for (const child of children) inner += `${indent}  ${renderAt(depth + 1, child)}`;
  return `${startTag(element, false)}>${inner}${indent}</${name}>`;
};

/** Writes an element like `render`, with nothing between the tags of its children. */
export const renderLine = (element: Element, depth = 1): string => {
  const { children } = element;
  if (typeof children === "string" || children.length === 0) return write(depth, element);
  check(element);
  if (depth === maxDepth) throw tooDeep();
  const inner = children.map((child) => renderLine(child, depth + 1)).join("");
  return `${startTag(element, false)}>${inner}</${element.name}>`;
};

/**
 * Writes an element as LMML: attributes in the order given, child elements on lines of their own, text exactly as
 * `visible` gives it. Text marked `raw` is written as it is if nothing in it can be taken for a tag of the vocabulary;
 * otherwise it is escaped and the mark is left out. Throws if a required attribute or a possible name is missing: that
 * is a bug of the caller, never of the data.
 * @param depth levels between it and the root of what it is to stand in
 */
export const render = (element: Element, depth = 0): string => renderAt(depth + 1, element);
