import type { CryptoRow } from "../tables/crypto-rows.ts";
import type { Key } from "./idb-key.ts";
import { fire, StoreRequest } from "./idb-request.ts";

/** The table behind a database. */
export interface RowStore {
  load(except: readonly string[]): Promise<CryptoRow[]>;
  find(store: string, key: string): Promise<string | undefined>;
  all(store: string): Promise<CryptoRow[]>;
  write(rows: readonly CryptoRow[]): Promise<void>;
}

export interface StoreIndex {
  readonly path: string | readonly string[];
}

export interface Schema {
  version: number;
  readonly stores: Record<string, Record<string, StoreIndex>>;
}

/** Stores that grow for ever are read by key; all others are small, and kept in memory while the machine is open. */
export const growing: ReadonlySet<string> = new Set(["inbound_group_sessions3", "olm_hashes", "withheld_sessions"]);

/** A database as it is committed. */
export interface Committed {
  /** Under which the rows of this database stand in the table, before the names of its stores. */
  readonly prefix: string;
  readonly rows: RowStore;
  schema: Schema;
  readonly memory: Map<string, Map<string, string>>;
  /** The last transaction that writes: they follow one another. */
  lastWrite: Promise<void>;
}

export const schemaRow = "schema";

type Stage = "active" | "committing" | "finished";

/**
 * A transaction of the crypto machine. What it writes is staged, then committed by one statement; only after that it is
 * complete. So whatever promise of the machine resolves, its state is durable.
 */
export class StagedTransaction extends EventTarget {
  onabort: ((event: Event) => void) | null = null;
  oncomplete: ((event: Event) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  error: unknown = null;
  readonly mode: string;
  /** Schema as it is after this transaction, where it changes it. */
  readonly newSchema: Schema | undefined;
  readonly #committed: Committed;
  readonly #staged = new Map<string, Map<string, string | null>>();
  readonly #asked: { readonly request: StoreRequest; readonly run: () => Promise<unknown> }[] = [];
  #stage: Stage = "active";
  #release: () => void = () => {};

  constructor(committed: Committed, mode: string, newSchema?: Schema) {
    super();
    this.mode = mode;
    this.newSchema = newSchema;
    this.#committed = committed;
    const before = mode === "readonly" ? Promise.resolve() : committed.lastWrite;
    if (mode !== "readonly")
      committed.lastWrite = new Promise((resolve) => {
        this.#release = resolve;
      });
    // Whoever opened the transaction says what it is to do before it begins.
    void before.then(() => setImmediate(() => void this.#run()));
  }

  get schema(): Schema {
    return this.newSchema ?? this.#committed.schema;
  }

  /** Asks for something, after what was asked before. */
  ask(source: unknown, run: () => Promise<unknown>, request = new StoreRequest()): StoreRequest {
    if (this.#stage !== "active") throw new DOMException("it has ended", "TransactionInactiveError");
    request.source = source;
    request.transaction = this;
    request.readyState = "pending";
    this.#asked.push({ request, run });
    return request;
  }

  async read(store: string, key: string): Promise<string | undefined> {
    const staged = this.#staged.get(store)?.get(key);
    if (staged !== undefined) return staged ?? undefined;
    if (!growing.has(store)) return this.#committed.memory.get(store)?.get(key);
    return this.#committed.rows.find(this.#nameOf(store), key);
  }

  /** All rows of a store, unordered. */
  async readAll(store: string): Promise<Map<string, string>> {
    const found = new Map(growing.has(store) ? await this.#stored(store) : this.#committed.memory.get(store));
    for (const [key, value] of this.#staged.get(store) ?? []) {
      if (value === null) found.delete(key);
      else found.set(key, value);
    }
    return found;
  }

  /** @param value null: the row is deleted */
  write(store: string, key: Key, value: string | null): Key {
    if (typeof key !== "string") throw new DOMException("a key is no text", "DataError");
    if (this.mode === "readonly") throw new DOMException("this transaction only reads", "ReadOnlyError");
    const rows = this.#staged.get(store) ?? new Map<string, string | null>();
    this.#staged.set(store, rows.set(key, value));
    return key;
  }

  /** Nothing to do: a transaction commits when nothing more is asked. */
  commit(): void {}

  /** Nothing of it is written; too late once it commits. */
  abort(): void {
    if (this.#stage !== "active") return;
    this.error ??= new DOMException("it was aborted", "AbortError");
    this.#finish("abort");
    for (const { request } of this.#asked.splice(0)) request.refuse(this.error);
  }

  #nameOf(store: string): string {
    return `${this.#committed.prefix}/${store}`;
  }

  async #stored(store: string): Promise<[string, string][]> {
    const rows = await this.#committed.rows.all(this.#nameOf(store));
    return rows.map(({ key, value }) => [key, value ?? ""]);
  }

  async #run(): Promise<void> {
    for (let next = this.#asked.shift(); next; next = this.#asked.shift()) {
      try {
        const answer = await next.run();
        if (this.#stage !== "active") return next.request.refuse(this.error);
        next.request.answer(answer);
      } catch (error) {
        next.request.refuse(error);
        this.error = error;
        return this.abort();
      }
      // The machine asks for the next thing in a microtask.
      if (this.#asked.length === 0) await new Promise(setImmediate);
    }
    if (this.#stage !== "active") return;
    this.#stage = "committing";
    try {
      await this.#commit();
      this.#finish("complete");
    } catch (error) {
      this.error = new DOMException(error instanceof Error ? error.message : String(error), "UnknownError");
      this.#finish("abort");
    }
  }

  async #commit(): Promise<void> {
    const { memory, prefix, rows } = this.#committed;
    const changes = [...this.#staged].flatMap(([store, changed]) =>
      [...changed].map(([key, value]): CryptoRow => ({ store: this.#nameOf(store), key, value })),
    );
    if (this.newSchema) changes.push({ store: prefix, key: schemaRow, value: JSON.stringify(this.newSchema) });
    if (changes.length === 0) return;
    await rows.write(changes);
    for (const [store, changed] of this.#staged) {
      if (growing.has(store)) continue;
      const kept = memory.get(store) ?? new Map<string, string>();
      memory.set(store, kept);
      for (const [key, value] of changed) {
        if (value === null) kept.delete(key);
        else kept.set(key, value);
      }
    }
    if (this.newSchema) this.#committed.schema = this.newSchema;
  }

  #finish(event: "complete" | "abort"): void {
    this.#stage = "finished";
    this.#release();
    setImmediate(() => fire(this, new Event(event)));
  }
}
