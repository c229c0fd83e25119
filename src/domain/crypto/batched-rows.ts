import type { CryptoRow } from "../tables/crypto-rows.ts";
import type { RowStore } from "./idb-transaction.ts";

/**
 * Rows of which several writes can be made one. The machine writes what it does in steps: dying between two of them it
 * would have used a message of another device up, without having kept the key that was in it.
 */
export class BatchedRows implements RowStore {
  readonly #rows: RowStore;
  #batch: Map<string, CryptoRow> | undefined;

  constructor(rows: RowStore) {
    this.#rows = rows;
  }

  /** Stores all that `work` writes when it has ended, in one statement. */
  async together<Result>(work: () => Promise<Result>): Promise<Result> {
    const batch = new Map<string, CryptoRow>();
    this.#batch = batch;
    return work().finally(async () => {
      this.#batch = undefined;
      if (batch.size > 0) await this.#rows.write([...batch.values()]);
    });
  }

  load(except: readonly string[]): Promise<CryptoRow[]> {
    return this.#rows.load(except);
  }

  async find(store: string, key: string): Promise<string | undefined> {
    const row = this.#batch?.get(nameOf({ store, key }));
    return row ? (row.value ?? undefined) : this.#rows.find(store, key);
  }

  async all(store: string): Promise<CryptoRow[]> {
    const found = new Map((await this.#rows.all(store)).map((row) => [nameOf(row), row]));
    for (const [name, row] of this.#batch ?? []) if (row.store === store) found.set(name, row);
    return [...found.values()].filter(({ value }) => value !== null);
  }

  async write(rows: readonly CryptoRow[]): Promise<void> {
    if (!this.#batch) return this.#rows.write(rows);
    for (const row of rows) this.#batch.set(nameOf(row), row);
  }
}

const nameOf = ({ store, key }: Pick<CryptoRow, "store" | "key">): string => JSON.stringify([store, key]);
