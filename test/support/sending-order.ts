/** A row of the outbox, as far as its place among those of its sender is concerned. */
export interface QueuedRow {
  readonly key: string;
  /** The turn that it follows from; null where the router or a command wrote it. */
  readonly turn: number | null;
  readonly createdAt: Date;
}

/** Statements that begin so close to each other may know nothing of each other: the one that ends first is sent first. */
const sameMomentMs = 1_000;

/**
 * True if a room has each of the rows of one sender once, and in their order. Two rows may have changed places only if
 * they were written at the same moment, and not by the same turn.
 */
export function wereSentInOrder(rows: readonly QueuedRow[], keys: readonly unknown[]): boolean {
  const placeOf = new Map(keys.map((key, place) => [key, place]));
  if (keys.length !== rows.length || placeOf.size !== rows.length) return false;
  const places = rows.map(({ key }) => placeOf.get(key) ?? -1);
  if (places.includes(-1)) return false;
  return rows.every((row, n) =>
    rows.slice(n + 1).every((later, m) => {
      const isInOrder = (places[n] ?? 0) < (places[n + 1 + m] ?? 0);
      return isInOrder || knewNothingOf(row, later);
    }),
  );
}

const knewNothingOf = (row: QueuedRow, later: QueuedRow): boolean =>
  (row.turn === null || row.turn !== later.turn) &&
  Math.abs(row.createdAt.getTime() - later.createdAt.getTime()) < sameMomentMs;
