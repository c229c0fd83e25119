import { compareKeys, type Key, KeyRange } from "./idb-key.ts";
import { OpenRequest, StoreRequest, VersionChange } from "./idb-request.ts";
import { Cursor, CursorWithValue, Index, ObjectStore } from "./idb-store.ts";
import {
  type Committed,
  growing,
  type RowStore,
  type Schema,
  StagedTransaction,
  schemaRow,
} from "./idb-transaction.ts";

/**
 * An IndexedDB, as far as the crypto machine uses one, whose rows stand in a table of ours: the machine has no other
 * store that outlives the process. Its classes are global, because the machine asks what is an instance of what.
 */

/** Tables behind the databases that are open, by the names under which the machine opens them. */
const mounted = new Map<string, RowStore>();

/** From now on databases of this name are kept in `rows`. Returns how to end it. */
export const mount = (name: string, rows: RowStore): (() => void) => {
  mounted.set(name, rows);
  return () => {
    mounted.delete(name);
  };
};

class Transaction extends StagedTransaction {
  objectStore(name: string): ObjectStore {
    if (!(name in this.schema.stores)) throw new DOMException(`there is no store ${name}`, "NotFoundError");
    return new ObjectStore(this, name);
  }

  get objectStoreNames(): string[] {
    return Object.keys(this.schema.stores);
  }
}

class StoreDatabase extends EventTarget {
  readonly name: string;
  readonly #committed: Committed;
  #upgrade: Transaction | undefined;

  constructor(name: string, committed: Committed) {
    super();
    this.name = name;
    this.#committed = committed;
  }

  get version(): number {
    return this.#schema.version;
  }

  get objectStoreNames() {
    const names = Object.keys(this.#schema.stores).sort();
    return Object.assign(names, {
      contains: (name: string) => names.includes(name),
      item: (at: number) => names[at] ?? null,
    });
  }

  transaction(_stores: string | readonly string[], mode = "readonly"): Transaction {
    return new Transaction(this.#committed, mode);
  }

  createObjectStore(name: string): ObjectStore {
    const { schema, upgrade } = this.#upgrading;
    schema.stores[name] = {};
    return new ObjectStore(upgrade, name);
  }

  deleteObjectStore(name: string): void {
    const { schema, upgrade } = this.#upgrading;
    new ObjectStore(upgrade, name).clear();
    delete schema.stores[name];
  }

  close(): void {}

  /** Has whoever asked bring the database to a newer version. */
  async upgrade(version: number, request: OpenRequest): Promise<void> {
    const before = this.#committed.schema;
    const upgrade = new Transaction(this.#committed, "versionchange", { ...structuredClone(before), version });
    this.#upgrade = upgrade;
    const ended = new Promise<void>((resolve, reject) => {
      upgrade.addEventListener("complete", () => resolve());
      upgrade.addEventListener("abort", () => reject(upgrade.error));
    });
    request.transaction = upgrade;
    request.answer(this, new VersionChange(before.version, version));
    await ended.finally(() => {
      this.#upgrade = undefined;
      request.transaction = null;
    });
  }

  get #schema(): Schema {
    return this.#upgrade?.schema ?? this.#committed.schema;
  }

  get #upgrading(): { readonly schema: Schema; readonly upgrade: Transaction } {
    if (!this.#upgrade?.newSchema) throw new DOMException("no upgrade is under way", "InvalidStateError");
    return { schema: this.#upgrade.newSchema, upgrade: this.#upgrade };
  }
}

/** The machine keeps two databases, of which this one is the smaller. */
const metaSuffix = "::matrix-sdk-crypto-meta";
const suffixes = /::matrix-sdk-crypto(?:-meta)?$/;

async function openFrom(name: string): Promise<Committed> {
  const rows = mounted.get(name.replace(suffixes, ""));
  if (!rows) throw new DOMException(`no table is behind ${name}`, "NotFoundError");
  const prefix = name.endsWith(metaSuffix) ? "meta" : "crypto";
  const memory = new Map<string, Map<string, string>>();
  let schema: Schema = { version: 0, stores: {} };
  for (const { store, key, value } of await rows.load([...growing].map((one) => `${prefix}/${one}`))) {
    if (store === prefix && key === schemaRow) schema = JSON.parse(value ?? "");
    if (!store.startsWith(`${prefix}/`)) continue;
    const inStore = store.slice(prefix.length + 1);
    memory.set(inStore, (memory.get(inStore) ?? new Map<string, string>()).set(key, value ?? ""));
  }
  return { prefix, rows, schema, memory, lastWrite: Promise.resolve() };
}

class Factory {
  open(name: string, version?: number): OpenRequest {
    const request = new OpenRequest();
    const opening = async () => {
      const committed = await openFrom(name);
      const database = new StoreDatabase(name, committed);
      const wanted = version ?? Math.max(1, committed.schema.version);
      if (wanted < committed.schema.version) throw new DOMException("the store is of a newer version", "VersionError");
      if (wanted > committed.schema.version) await database.upgrade(wanted, request);
      return database;
    };
    opening().then(
      (database) => request.answer(database),
      (error: unknown) => request.refuse(error),
    );
    return request;
  }

  /** The machine deletes databases of older versions of itself, which we never had. */
  deleteDatabase(): OpenRequest {
    const request = new OpenRequest();
    setImmediate(() => request.answer(undefined));
    return request;
  }

  cmp(one: Key, other: Key): number {
    return Math.sign(compareKeys(one, other));
  }
}

/** Makes this the IndexedDB of the process; to be called before the machine is loaded. */
export const installStore = (): void => {
  Object.assign(globalThis, {
    indexedDB: new Factory(),
    IDBCursor: Cursor,
    IDBCursorWithValue: CursorWithValue,
    IDBDatabase: StoreDatabase,
    IDBFactory: Factory,
    IDBIndex: Index,
    IDBKeyRange: KeyRange,
    IDBObjectStore: ObjectStore,
    IDBOpenDBRequest: OpenRequest,
    IDBRequest: StoreRequest,
    IDBTransaction: Transaction,
    IDBVersionChangeEvent: VersionChange,
  });
};
