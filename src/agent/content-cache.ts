import type { WholeContent } from "../context/viewport.ts";

/** Characters that are kept in all. */
const charsMax = 16_000_000;

/** Contents that are costly to prepare, those used last; a content never changes under its key. */
export class ContentCache {
  readonly #kept = new Map<string, WholeContent>();
  #chars = 0;

  get(key: string): WholeContent | undefined {
    const content = this.#kept.get(key);
    if (content) {
      this.#kept.delete(key);
      this.#kept.set(key, content);
    }
    return content;
  }

  keep(key: string, content: WholeContent): WholeContent {
    if (content.chars > charsMax || this.#kept.has(key)) return content;
    this.#kept.set(key, content);
    this.#chars += content.chars;
    for (const [oldest, { chars }] of this.#kept) {
      if (this.#chars <= charsMax) break;
      this.#kept.delete(oldest);
      this.#chars -= chars;
    }
    return content;
  }
}
