/** Characters that end a sentence, or close something around an address, and hardly an address. */
const closing = /[.,;:!?'"“”‘’»)\]}>*_~`|]+$/;
const opening = /^[("'“‘«[{<*_~`|]+/;

/** An address in the one form in which it is compared; what stands behind # is never sent. Undefined for what is none. */
export const addressForm = (text: string): string | undefined => {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return undefined;
  url.hash = "";
  return url.href;
};

/** The address without the angle brackets or quotes in which people write one; any other text as it is. */
export const unwrapped = (text: string): string => /^[<"'“‘«](https?:\/\/.*)[>"'”’»]$/is.exec(text)?.[1] ?? text;

/** True if a text that could be a path is meant as an address. */
export const isWebAddress = (text: string): boolean => /^\s*https?:\/\//i.test(text);

/** Beginning of the sources of knowledge from a page, before their numbers; undefined for what is no address. */
export const pageSourcePrefix = (address: string): string | undefined => {
  const form = addressForm(address);
  if (form === undefined) return undefined;
  const { origin } = new URL(form);
  // No address begins with the whole of another and its bracket.
  const rest = form.slice(origin.length).replaceAll("[", "%5B").replaceAll("]", "%5D");
  return `web:${origin}${rest}[`;
};

/**
 * The addresses that stand in a text, word for word, each once and in the one form. Where the end of one is not certain,
 * as with `(see https://a.example/b)`, all that it may be are given.
 * @param most how many are given: the first
 */
export function addressesIn(text: string, most: number): string[] {
  const found = new Set<string>();
  for (const [word] of text.matchAll(/https?:\/\/[^\s<>"\\]{1,4000}/gi)) {
    // In Markdown, the address ends with the bracket that was opened before it.
    for (const part of new Set([word, word.replace(closing, ""), word.split(/[)\]]/, 1)[0] ?? ""])) {
      const form = addressForm(part);
      if (form !== undefined) found.add(form);
    }
    if (found.size >= most) break;
  }
  return [...found].slice(0, most);
}

/** A line that repeats what another has said, as Markdown and the fallbacks of replies mark it. */
const quotation = /^ {0,3}>/;

/** True if the address stands in a person's own words, with or without its scheme. Quoted lines are no words of theirs. */
export function isWrittenIn(address: string, written: string): boolean {
  const wanted = addressForm(address);
  if (wanted === undefined) return false;
  const own = written
    .split("\n")
    .filter((line) => !quotation.test(line))
    .join("\n");
  if (addressesIn(own, 1_000).includes(wanted)) return true;
  return own.split(/\s+/).some((word) => {
    const bare = word.replace(opening, "").replace(closing, "");
    if (bare.includes("://") || !/^[\w-]+(?:\.[\w-]+)+(?:[/?:].*)?$/u.test(bare)) return false;
    return [`https://${bare}`, `http://${bare}`].some((one) => addressForm(one) === wanted);
  });
}
