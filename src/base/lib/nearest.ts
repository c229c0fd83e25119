/** Of what was typed, no more is compared or repeated: it may be a message of 64 KB. */
const typedMost = 64;

/** Shortens what somebody typed, so that it can be repeated to them. */
export const shortenTyped = (typed: string): string =>
  typed.length > typedMost ? `${typed.slice(0, typedMost).toWellFormed()}…` : typed;

/** The known name that somebody probably meant by a mistyped one; undefined when none is near. */
export const nearest = (typed: string, known: readonly string[]): string | undefined =>
  known
    .map((name) => ({ name, distance: editDistance(typed.slice(0, typedMost).toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= Math.max(1, name.length / 3))
    .sort((a, b) => a.distance - b.distance)[0]?.name;

/** Counts the letters that have to be put in, taken out, changed, or swapped with their neighbour. */
const editDistance = (a: string, b: string): number => {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++) {
      const changed = (row[j] ?? 0) + (b[j] === a[i] ? 0 : 1);
      const swapped = i > 0 && j > 0 && a[i] === b[j - 1] && a[i - 1] === b[j] ? (before[j - 1] ?? 0) + 1 : changed;
      next.push(Math.min(changed, swapped, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? 0;
};
