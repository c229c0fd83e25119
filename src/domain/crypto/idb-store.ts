import { isObject } from "../../base/lib/json.ts";
import { compareKeys, isMeant, type Key, type Query } from "./idb-key.ts";
import { StoreRequest } from "./idb-request.ts";
import type { StagedTransaction, StoreIndex } from "./idb-transaction.ts";

/** A row as it was found: by this key, which for an index is not its own. */
interface Found {
  readonly key: Key;
  readonly primaryKey: string;
  readonly value: unknown;
}

/** Text of a value; the machine is trusted with nothing that JSON would change in silence. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_key, inner: unknown) => {
    const isOther = inner instanceof Map || inner instanceof Set || ArrayBuffer.isView(inner);
    if (isOther || typeof inner === "bigint") throw new DOMException("a value is no JSON", "DataCloneError");
    return inner;
  });

const byKey = (one: Found, other: Found): number =>
  compareKeys(one.key, other.key) || compareKeys(one.primaryKey, other.primaryKey);

/** Ways of reading that a store and its indexes share. */
abstract class Source {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  protected abstract get place(): StagedTransaction;
  protected abstract get store(): string;
  protected abstract keyOf(primaryKey: string, text: string): Key | undefined;

  getAll(query?: Query, limit?: number): StoreRequest {
    return this.#ask(async () => (await this.find(query, limit)).map(({ value }) => value));
  }

  getAllKeys(query?: Query, limit?: number): StoreRequest {
    return this.#ask(async () => (await this.find(query, limit)).map(({ primaryKey }) => primaryKey));
  }

  count(query?: Query): StoreRequest {
    return this.#ask(async () => (await this.find(query)).length);
  }

  openCursor(query?: Query): StoreRequest {
    const request = new StoreRequest();
    return this.place.ask(
      this,
      async () => {
        const rows = await this.find(query);
        return rows.length === 0 ? null : new CursorWithValue({ source: this, request, rows, place: this.place });
      },
      request,
    );
  }

  /** Called by a cursor. */
  put(_value: unknown, _key: Key): StoreRequest {
    throw new DOMException("an index cannot be written", "ReadOnlyError");
  }

  protected async find(query: Query, limit?: number): Promise<Found[]> {
    const rows = [...(await this.place.readAll(this.store))].flatMap(([primaryKey, text]): Found[] => {
      const key = this.keyOf(primaryKey, text);
      return key !== undefined && isMeant(key, query) ? [{ key, primaryKey, value: JSON.parse(text) }] : [];
    });
    return rows.sort(byKey).slice(0, limit || undefined);
  }

  #ask(run: () => Promise<unknown>): StoreRequest {
    return this.place.ask(this, run);
  }
}

export class ObjectStore extends Source {
  readonly keyPath = null;
  readonly autoIncrement = false;
  readonly transaction: StagedTransaction;

  constructor(transaction: StagedTransaction, name: string) {
    super(name);
    this.transaction = transaction;
  }

  protected get place(): StagedTransaction {
    return this.transaction;
  }

  protected get store(): string {
    return this.name;
  }

  protected keyOf(primaryKey: string): Key {
    return primaryKey;
  }

  get indexNames(): string[] {
    return Object.keys(this.#indexes);
  }

  get #indexes(): Record<string, StoreIndex> {
    const indexes = this.transaction.schema.stores[this.name];
    if (!indexes) throw new DOMException(`there is no store ${this.name}`, "NotFoundError");
    return indexes;
  }

  get(query: Query): StoreRequest {
    return this.transaction.ask(this, async () => {
      if (typeof query !== "string") return (await this.find(query, 1))[0]?.value;
      const text = await this.transaction.read(this.name, query);
      return text === undefined ? undefined : JSON.parse(text);
    });
  }

  override put(value: unknown, key: Key): StoreRequest {
    const text = textOf(value);
    return this.transaction.ask(this, async () => this.transaction.write(this.name, key, text));
  }

  add(value: unknown, key: Key): StoreRequest {
    const text = textOf(value);
    return this.transaction.ask(this, async () => {
      if ((await this.transaction.read(this.name, String(key))) !== undefined)
        throw new DOMException("there is a row with this key", "ConstraintError");
      return this.transaction.write(this.name, key, text);
    });
  }

  delete(query: Key | Exclude<Query, null | undefined>): StoreRequest {
    return this.transaction.ask(this, async () => {
      if (typeof query === "string") this.transaction.write(this.name, query, null);
      else await this.#deleteAll(query);
    });
  }

  clear(): StoreRequest {
    return this.transaction.ask(this, () => this.#deleteAll(undefined));
  }

  index(name: string): Index {
    const index = this.#indexes[name];
    if (!index) throw new DOMException(`there is no index ${name}`, "NotFoundError");
    return new Index(this, name, index);
  }

  createIndex(name: string, path: StoreIndex["path"]): Index {
    const index = { path };
    this.#indexes[name] = index;
    return new Index(this, name, index);
  }

  deleteIndex(name: string): void {
    delete this.#indexes[name];
  }

  async #deleteAll(query: Query): Promise<void> {
    for (const { primaryKey } of await this.find(query)) this.transaction.write(this.name, primaryKey, null);
  }
}

export class Index extends Source {
  readonly objectStore: ObjectStore;
  readonly #index: StoreIndex;

  constructor(objectStore: ObjectStore, name: string, index: StoreIndex) {
    super(name);
    this.objectStore = objectStore;
    this.#index = index;
  }

  protected get place(): StagedTransaction {
    return this.objectStore.transaction;
  }

  protected get store(): string {
    return this.objectStore.name;
  }

  protected keyOf(_primaryKey: string, text: string): Key | undefined {
    const value: unknown = JSON.parse(text);
    const at = (path: string): Key | undefined => {
      const found = isObject(value) ? value[path] : undefined;
      return typeof found === "string" || typeof found === "number" ? found : undefined;
    };
    const { path } = this.#index;
    if (typeof path === "string") return at(path);
    const parts = path.flatMap((one) => at(one) ?? []);
    return parts.length === path.length ? parts : undefined;
  }

  get(query: Query): StoreRequest {
    return this.place.ask(this, async () => (await this.find(query, 1))[0]?.value);
  }
}

interface CursorParts {
  readonly source: Source;
  readonly request: StoreRequest;
  readonly rows: readonly Found[];
  readonly place: StagedTransaction;
}

/** Goes through rows as they were when it was opened. */
export class Cursor {
  readonly source: Source;
  readonly request: StoreRequest;
  readonly #rows: readonly Found[];
  readonly #place: StagedTransaction;
  #at = 0;

  constructor({ source, request, rows, place }: CursorParts) {
    this.source = source;
    this.request = request;
    this.#rows = rows;
    this.#place = place;
  }

  get key(): Key | undefined {
    return this.#rows[this.#at]?.key;
  }

  get primaryKey(): string | undefined {
    return this.#rows[this.#at]?.primaryKey;
  }

  get value(): unknown {
    return this.#rows[this.#at]?.value;
  }

  continue(): void {
    this.advance(1);
  }

  advance(count: number): void {
    this.#at += count;
    this.#place.ask(this.source, async () => (this.#at < this.#rows.length ? this : null), this.request);
  }

  update(value: unknown): StoreRequest {
    return this.#store.put(value, String(this.primaryKey));
  }

  delete(): StoreRequest {
    return this.#store.delete(String(this.primaryKey));
  }

  get #store(): ObjectStore {
    return this.source instanceof Index ? this.source.objectStore : (this.source as ObjectStore);
  }
}

export class CursorWithValue extends Cursor {}
