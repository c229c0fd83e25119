/** Values that are costly to get, those used last: all of them together are no larger than `sizeMax`. */
export class Kept<Key, Value> {
  readonly #sizeMax: number;
  readonly #values = new Map<Key, { readonly value: Value; readonly size: number }>();
  #size = 0;

  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  get(key: Key): Value | undefined {
    const kept = this.#values.get(key);
    if (!kept) return undefined;
    this.#values.delete(key);
    this.#values.set(key, kept);
    return kept.value;
  }

  /** Keeps a value in place of what was kept under the key; one that is larger than all may be is not kept. */
  keep(key: Key, value: Value, size: number): Value {
    this.#forget(key);
    if (size > this.#sizeMax) return value;
    this.#values.set(key, { value, size });
    this.#size += size;
    for (const oldest of this.#values.keys()) {
      if (this.#size <= this.#sizeMax) break;
      this.#forget(oldest);
    }
    return value;
  }

  #forget(key: Key): void {
    this.#size -= this.#values.get(key)?.size ?? 0;
    this.#values.delete(key);
  }
}
