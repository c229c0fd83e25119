/** Characters that are compared as one. */
const block = 128;
/** Conversations of which the last call is remembered. */
const remembered = 2_000;

/** Measures how much of what a call sends was the same in the conversation's previous call: what a provider may cache. */
export class PrefixMeter {
  readonly #last = new Map<string, Int32Array>();

  /** Lengths in characters; the common beginning is rounded down to whole blocks. */
  measure(conversation: string, sent: string): { promptChars: number; prefixChars: number } {
    const blocks = hashes(sent);
    const before = this.#last.get(conversation) ?? new Int32Array();
    let same = 0;
    while (same < blocks.length && same < before.length && blocks[same] === before[same]) same += 1;
    this.#last.delete(conversation);
    this.#last.set(conversation, blocks);
    const [oldest] = this.#last.keys();
    if (this.#last.size > remembered && oldest !== undefined) this.#last.delete(oldest);
    return { promptChars: sent.length, prefixChars: Math.min(sent.length, same * block) };
  }
}

/** FNV-1a of each whole block. */
const hashes = (text: string): Int32Array => {
  const count = Math.floor(text.length / block);
  const result = new Int32Array(count);
  for (let index = 0; index < count; index++) {
    let hash = 0x811c9dc5;
    for (let at = index * block; at < (index + 1) * block; at++)
      hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
    result[index] = hash;
  }
  return result;
};
