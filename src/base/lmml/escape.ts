const references: ReadonlyMap<string, string> = new Map([
  ["<", "&lt;"],
  [">", "&gt;"],
  ["&", "&amp;"],
  ['"', "&quot;"],
  ["\t", "&#9;"],
  ["\n", "&#10;"],
  ["\r", "&#13;"],
]);
const toReference = (character: string): string => references.get(character) ?? character;

/** Escapes what has a meaning in text; `>` only where XML demands it, so that code and quotations stay readable. */
export const escapeText = (text: string): string =>
  /[<&\r]|\]\]>/.test(text) ? text.replace(/[<&\r]|(?<=\]\])>/g, toReference) : text;

/** Escapes what has a meaning in an attribute, and the whitespace that XML would turn into a space. */
export const escapeAttribute = (value: string): string =>
  /[<>&"\t\n\r]/.test(value) ? value.replace(/[<>&"\t\n\r]/g, toReference) : value;

const named: ReadonlyMap<string, string> = new Map([
  ["lt", "<"],
  ["gt", ">"],
  ["amp", "&"],
  ["quot", '"'],
  ["apos", "'"],
]);
const forbidden = /[^\t\n\r -\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;
const reference = /&(?:#x([\da-fA-F]{1,6})|#(\d{1,7})|([a-z]+));|&/g;

const decodeReference = (hex?: string, decimal?: string, name = ""): string | undefined => {
  if (hex === undefined && decimal === undefined) return named.get(name);
  const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
  const character = code <= 0x10ffff ? String.fromCodePoint(code) : "\0";
  return forbidden.test(character) ? undefined : character;
};

/** Reads the five named references and the numeric ones; any other `&` stays as it is. */
export const resolveReferences = (text: string): string =>
  text.replace(
    reference,
    (all, hex?: string, decimal?: string, name?: string) => decodeReference(hex, decimal, name) ?? all,
  );

/** Position of the first `&` that `resolveReferences` would leave as it is; -1 if there is none. */
export const findStrayReference = (text: string): number => {
  for (const { index, 1: hex, 2: decimal, 3: name } of text.matchAll(reference))
    if (decodeReference(hex, decimal, name) === undefined) return index;
  return -1;
};

/** Position of the first character that XML cannot carry; -1 if there is none. */
export const findForbidden = (text: string): number => text.search(forbidden);
