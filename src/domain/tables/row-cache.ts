import { LRUCache } from "lru-cache";

/** A row as a statement gives it to somebody who does not know it. */
export interface Versioned<Row> {
  readonly id: number;
  /** Different after every change of the row. */
  readonly version: string;
  readonly row: Row;
}

/** Rows that a statement need not transfer: it is told their `versions`, by id. */
export interface Known<Row> {
  readonly versions: Readonly<Record<string, string>>;
  readonly rows: ReadonlyMap<number, Row>;
}

/** The most ids that are remembered of all who read. */
const idsMax = 300_000;

/**
 * Rows of a table that were read before, those used last. They spare transfer and parsing and decide nothing: which
 * rows there are for whom, and as which version, is what each statement says. A row that has not changed stays the
 * same object.
 */
export class KnownRows<Row> {
  readonly #rows: LRUCache<number, Versioned<Row>>;
  readonly #read = new LRUCache<string, readonly number[]>({ maxSize: idsMax });
  readonly #sizeOf: (row: Row) => number;

  /** @param sizeMax of all rows together, by `sizeOf` */
  constructor(sizeMax: number, sizeOf: (row: Row) => number) {
    this.#rows = new LRUCache({ maxSize: sizeMax });
    this.#sizeOf = sizeOf;
  }

  /** Returns the rows that this reader was given last and that are still here. */
  of(reader: string): Known<Row> {
    const known = (this.#read.get(reader) ?? []).flatMap((id) => this.#rows.get(id) ?? []);
    return {
      versions: Object.fromEntries(known.map(({ id, version }) => [id, version])),
      rows: new Map(known.map(({ id, row }) => [id, row])),
    };
  }

  /** All rows that the reader is given now, in the order of `ids`: those of `known`, and what the statement sent. */
  give(reader: string, known: Known<Row>, ids: readonly number[], sent: readonly Versioned<Row>[]): Row[] {
    this.#read.set(reader, ids, { size: ids.length + 1 });
    const fresh = new Map(sent.map((row) => [row.id, this.#keep(row)]));
    return ids.map((id) => {
      const row = fresh.get(id) ?? known.rows.get(id);
      if (row === undefined) throw new Error(`row ${id} is neither known nor sent`);
      return row;
    });
  }

  #keep(sent: Versioned<Row>): Row {
    const kept = this.#rows.get(sent.id);
    if (kept?.version === sent.version) return kept.row;
    this.#rows.set(sent.id, sent, { size: this.#sizeOf(sent.row) });
    return sent.row;
  }
}
