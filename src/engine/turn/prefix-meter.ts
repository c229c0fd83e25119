import { LRUCache } from "lru-cache";

/** Characters that are compared as one. */
const block = 128;
const offset = 0x811c9dc5;
const prime = 0x01000193;
/** Conversations of which the last call is remembered. */
const remembered = 2_000;

/** Measures how much of what a call sends was the same in the conversation's previous call: what a provider may cache. */
export class PrefixMeter {
  readonly #last = new LRUCache<string, Int32Array>({ max: remembered });

  /** `sent`: texts, one after the other. Lengths in characters; the common beginning is rounded down to whole blocks. */
  measure(conversation: string, sent: readonly string[]): { promptChars: number; prefixChars: number } {
    const blocks = hashes(sent);
    const before = this.#last.get(conversation) ?? new Int32Array();
    let same = 0;
    while (same < blocks.length && same < before.length && blocks[same] === before[same]) same += 1;
    this.#last.set(conversation, blocks);
    return { promptChars: sent.reduce((chars, text) => chars + text.length, 0), prefixChars: same * block };
  }
}

/** FNV-1a of each whole block, without making one text of all. */
const hashes = (texts: readonly string[]): Int32Array => {
  const result: number[] = [];
  let hash = offset;
  let missing = block;
  for (const text of texts) {
    let at = 0;
    while (at < text.length) {
      const end = Math.min(text.length, at + missing);
      missing -= end - at;
      for (; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), prime);
      if (missing > 0) break;
      result.push(hash);
      hash = offset;
      missing = block;
    }
  }
  return Int32Array.from(result);
};
