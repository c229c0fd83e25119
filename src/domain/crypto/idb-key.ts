/** Keys of rows and of indexes, as far as the crypto machine uses them. */
export type Key = string | number | readonly Key[];

/** Numbers stand before texts, and texts before lists. */
const rankOf = (key: Key): number => (typeof key === "number" ? 1 : typeof key === "string" ? 2 : 3);

export function compareKeys(one: Key, other: Key): number {
  if (Array.isArray(one) && Array.isArray(other)) {
    const differs = one.findIndex((part: Key, at) => other[at] === undefined || compareKeys(part, other[at]) !== 0);
    if (differs < 0) return one.length - other.length;
    return other[differs] === undefined ? 1 : compareKeys(one[differs], other[differs]);
  }
  if (rankOf(one) !== rankOf(other)) return rankOf(one) - rankOf(other);
  return one < other ? -1 : one > other ? 1 : 0;
}

interface Bounds {
  readonly lower: Key | undefined;
  readonly upper: Key | undefined;
  readonly lowerOpen: boolean;
  readonly upperOpen: boolean;
}

export class KeyRange implements Bounds {
  readonly lower: Key | undefined;
  readonly upper: Key | undefined;
  readonly lowerOpen: boolean;
  readonly upperOpen: boolean;

  constructor({ lower, upper, lowerOpen, upperOpen }: Bounds) {
    this.lower = lower;
    this.upper = upper;
    this.lowerOpen = lowerOpen;
    this.upperOpen = upperOpen;
  }

  static bound(lower: Key, upper: Key, lowerOpen = false, upperOpen = false): KeyRange {
    return new KeyRange({ lower, upper, lowerOpen, upperOpen });
  }

  static only(key: Key): KeyRange {
    return KeyRange.bound(key, key);
  }

  static lowerBound(lower: Key, lowerOpen = false): KeyRange {
    return new KeyRange({ lower, upper: undefined, lowerOpen, upperOpen: false });
  }

  static upperBound(upper: Key, upperOpen = false): KeyRange {
    return new KeyRange({ lower: undefined, upper, lowerOpen: false, upperOpen });
  }

  includes(key: Key): boolean {
    const fromLower = this.lower === undefined ? 1 : compareKeys(key, this.lower);
    const toUpper = this.upper === undefined ? 1 : compareKeys(this.upper, key);
    return (this.lowerOpen ? fromLower > 0 : fromLower >= 0) && (this.upperOpen ? toUpper > 0 : toUpper >= 0);
  }
}

/** A key, a range of keys, or nothing for all of them. */
export type Query = Key | KeyRange | null | undefined;

export const isMeant = (key: Key, query: Query): boolean => {
  if (query === undefined || query === null) return true;
  return query instanceof KeyRange ? query.includes(key) : compareKeys(key, query) === 0;
};
