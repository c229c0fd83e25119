import { LRUCache } from "lru-cache";

/** A row as a statement gives it to somebody who does not know it. */
export interface Versioned<Row> {
  readonly id: number;
  /** Room or other list that it belongs to, and its place there: rows are given in this order. */
  readonly source: string;
  readonly place: number;
  /** A 64-bit hash, different after every change of the row, and from that of every other row. */
  readonly version: string;
  /** True if facts that are read with it may change while the row does not: it is sent each time. */
  readonly isOpen: boolean;
  readonly row: Row;
}

/** Says which rows of a source a reader has: pages of rows side by side. The statement says which of them it may use. */
export interface Claim {
  readonly source: string;
  /** Its number, by which the statement names it. */
  readonly n: number;
  /** Place of the last row. */
  readonly last: number;
  /** Place of the first row of each page. */
  readonly firsts: readonly number[];
  /** Of each page, the versions of its rows, joined by XOR. */
  readonly versions: readonly string[];
  /** Ids of rows that count in no page. */
  readonly open: readonly number[];
}

/** A page that is as it was claimed: the number of the claim, and its own there, from 1. */
export type Proven = readonly [claim: number, page: number];

/** Rows of a table that a reader has. */
export interface Known<Row> {
  readonly claims: readonly Claim[];
  /** Rows of the pages, by the number of the claim. */
  readonly pages: ReadonlyMap<number, readonly (readonly KnownRow<Row>[])[]>;
}

interface KnownRow<Row> extends Versioned<Row> {
  readonly hash: bigint;
}

/** The most ids that are remembered of all who read. */
const idsMax = 300_000;
/** Rows that are sent together where one of them has changed. */
const pageRows = 32;

/**
 * Rows of a table that were read before, those used last. They spare transfer and parsing and decide nothing: which
 * rows there are for whom, and as which version, is what each statement works out anew. It proves a page by its rows'
 * versions, and sends all others. A row that has not changed stays the same object.
 */
export class KnownRows<Row extends object> {
  readonly #rows: LRUCache<number, KnownRow<Row>>;
  readonly #read = new LRUCache<string, readonly number[]>({ maxSize: idsMax });
  readonly #sizeOf: (row: Row) => number;

  /** @param sizeMax of all rows together, by `sizeOf` */
  constructor(sizeMax: number, sizeOf: (row: Row) => number) {
    this.#rows = new LRUCache({ maxSize: sizeMax });
    this.#sizeOf = sizeOf;
  }

  /** Returns the rows that this reader was given last and that are still here; claims are numbered from `first`. */
  of(reader: string, first = 1): Known<Row> {
    const known = (this.#read.get(reader) ?? []).flatMap((id) => this.#rows.get(id) ?? []);
    const closed = Map.groupBy(
      known.filter(({ isOpen }) => !isOpen),
      ({ source }) => source,
    );
    const open = Map.groupBy(
      known.filter(({ isOpen }) => isOpen),
      ({ source }) => source,
    );
    const bySource = [...closed].map(([source, rows], index) => ({
      n: first + index,
      source,
      pages: pagesOf(rows),
      open: (open.get(source) ?? []).map(({ id }) => id),
    }));
    return { claims: bySource.map(claimOf), pages: new Map(bySource.map(({ n, pages }) => [n, pages])) };
  }

  /** All rows that the reader is given now: the proven pages of `known`, and what the statement sent. */
  give(reader: string, known: Known<Row>, proven: readonly Proven[], sent: readonly Versioned<Row>[]): Row[] {
    const rows = [
      ...proven.flatMap(([claim, page]) => known.pages.get(claim)?.[page - 1] ?? []),
      ...sent.map((row) => this.#keep(row)),
    ].toSorted(inOrder);
    const ids = rows.map(({ id }) => id);
    this.#read.set(reader, ids, { size: ids.length + 1 });
    return rows.map(({ row }) => row);
  }

  /** Forgets all rows. */
  clear(): void {
    this.#rows.clear();
    this.#read.clear();
  }

  #keep(sent: Versioned<Row>): KnownRow<Row> {
    const kept = this.#rows.get(sent.id);
    const isSame = kept?.version === sent.version && (!(kept.isOpen || sent.isOpen) || areEqual(kept.row, sent.row));
    const row = isSame ? kept.row : sent.row;
    const known = { ...sent, row, hash: BigInt(sent.version) };
    this.#rows.set(sent.id, known, { size: this.#sizeOf(row) });
    return known;
  }
}

const areEqual = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b);

const inOrder = (a: Versioned<object>, b: Versioned<object>): number =>
  a.source === b.source ? a.place - b.place || a.id - b.id : a.source < b.source ? -1 : 1;

const pagesOf = <Row>(rows: readonly Row[]): Row[][] =>
  Array.from({ length: Math.ceil(rows.length / pageRows) }, (_, n) => rows.slice(n * pageRows, (n + 1) * pageRows));

const claimOf = <Row>({
  pages,
  ...claim
}: Pick<Claim, "n" | "open" | "source"> & { readonly pages: readonly (readonly KnownRow<Row>[])[] }): Claim => ({
  ...claim,
  last: pages.at(-1)?.at(-1)?.place ?? 0,
  firsts: pages.map(([row]) => row?.place ?? 0),
  versions: pages.map((page) => String(page.reduce((joined, { hash }) => joined ^ hash, 0n))),
});
