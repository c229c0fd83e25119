import { describe, expect, it } from "vitest";
import { installStore, mount } from "../../../src/domain/crypto/idb.ts";
import type { RowStore } from "../../../src/domain/crypto/idb-transaction.ts";
import type { CryptoRow } from "../../../src/domain/tables/crypto-rows.ts";
import { dice } from "../../support/chaos.ts";

installStore();

// As much of IndexedDB as the machine uses; the types of browsers are not those of Node.
type Request = EventTarget & { result: never; error: unknown };
interface Cursor {
  readonly key: string;
  readonly value: unknown;
  continue(): void;
  update(value: unknown): Request;
  delete(): Request;
}
interface Store {
  put(value: unknown, key: string): Request;
  add(value: unknown, key: string): Request;
  get(key: string): Request;
  delete(key: string): Request;
  clear(): Request;
  count(): Request;
  getAll(): Request;
  getAllKeys(): Request;
  openCursor(): Request;
  createIndex(name: string, path: string): unknown;
  index(name: string): Store;
}
type Transaction = EventTarget & { objectStore(name: string): Store; abort(): void; error: unknown };
interface Opened {
  transaction(stores: string, mode?: string): Transaction;
  createObjectStore(name: string): Store;
}
const factory = (globalThis as unknown as { indexedDB: { open(name: string, version?: number): Request } }).indexedDB;

/** A table that may refuse to be written. */
class Table implements RowStore {
  readonly rows = new Map<string, CryptoRow>();
  writes = 0;
  refuses = false;
  gate: Promise<void> = Promise.resolve();

  async load(except: readonly string[]) {
    return [...this.rows.values()].filter(({ store }) => !except.includes(store));
  }
  async find(store: string, key: string) {
    return this.rows.get(`${store} ${key}`)?.value ?? undefined;
  }
  async all(store: string) {
    return [...this.rows.values()].filter((row) => row.store === store);
  }
  async write(rows: readonly CryptoRow[]) {
    await this.gate;
    this.writes += 1;
    if (this.refuses) throw new Error("the disk is full");
    for (const row of rows) {
      if (row.value === null) this.rows.delete(`${row.store} ${row.key}`);
      else this.rows.set(`${row.store} ${row.key}`, row);
    }
  }
}

const done = <Result>(request: Request): Promise<Result> =>
  new Promise((resolve, reject) => {
    request.addEventListener("success", () => resolve(request.result));
    request.addEventListener("error", () => reject(request.error));
  });
const ended = (transaction: Transaction): Promise<"complete" | "abort"> =>
  new Promise((resolve) => {
    for (const how of ["complete", "abort"] as const) transaction.addEventListener(how, () => resolve(how));
  });

// One is kept in memory, of the other each row is read when it is asked for.
const names = ["small", "olm_hashes"] as const;

let count = 0;
/** A database with two rows in each of its stores. */
const scene = async () => {
  const table = new Table();
  const name = `machine ${++count}`;
  mount(name, table);
  const open = async (version = 1): Promise<Opened> => {
    const request = factory.open(name, version);
    request.addEventListener("upgradeneeded", () => {
      const database = request.result as Opened;
      if (version === 1) for (const store of names) database.createObjectStore(store).createIndex("by", "by");
      else database.createObjectStore("new").put("there", "a");
    });
    return done(request);
  };
  const database = await open();
  for (const store of names) {
    const transaction = database.transaction(store, "readwrite");
    for (const key of ["a", "b"]) transaction.objectStore(store).put({ by: `by ${key}` }, key);
    expect(await ended(transaction)).toBe("complete");
  }
  const read = async (from: Opened, store: string) => {
    const [keys, values] = [await all(from, store, "getAllKeys"), await all(from, store, "getAll")];
    return Object.fromEntries(keys.map((key, at) => [key, values[at]]));
  };
  return { table, database, open, read };
};
const all = (from: Opened, store: string, what: "getAll" | "getAllKeys"): Promise<string[]> =>
  done(from.transaction(store).objectStore(store)[what]());
const each = async (store: Store, act: (cursor: Cursor) => Request) => {
  const request = store.openCursor();
  request.addEventListener("success", () => {
    const cursor = request.result as Cursor | null;
    if (!cursor) return;
    act(cursor);
    cursor.continue();
  });
};

const before = { a: { by: "by a" }, b: { by: "by b" } };
const operations: [string, (store: Store) => unknown, Record<string, unknown>][] = [
  ["put", (store) => store.put({ by: "new" }, "a"), { ...before, a: { by: "new" } }],
  ["put of another row", (store) => store.put(5, "c"), { ...before, c: 5 }],
  ["add", (store) => store.add(5, "c"), { ...before, c: 5 }],
  ["delete", (store) => store.delete("a"), { b: before.b }],
  ["clear", (store) => store.clear(), {}],
  ["update by a cursor", (store) => each(store, (cursor) => cursor.update(cursor.key)), { a: "a", b: "b" }],
  ["delete by a cursor", (store) => each(store, (cursor) => cursor.delete()), {}],
];

describe.each(names)("the machine's store (%s)", (store) => {
  it.each(operations)("%s is there for whoever opens it later", async (_name, act, after) => {
    const { database, open, read } = await scene();
    const transaction = database.transaction(store, "readwrite");
    act(transaction.objectStore(store));
    expect(await ended(transaction)).toBe("complete");
    expect([await read(database, store), await read(await open(), store)]).toEqual([after, after]);
  });

  it.each(operations)("%s that the table refuses is aborted, and has not been", async (_name, act) => {
    const { table, database, open, read } = await scene();
    table.refuses = true;
    const transaction = database.transaction(store, "readwrite");
    act(transaction.objectStore(store));
    expect(await ended(transaction)).toBe("abort");
    expect(String(transaction.error)).toContain("the disk is full");
    expect([await read(database, store), await read(await open(), store)]).toEqual([before, before]);
  });

  it.each(operations)("%s that is aborted does not reach the table", async (_name, act) => {
    const { table, database, read } = await scene();
    const writes = table.writes;
    const transaction = database.transaction(store, "readwrite");
    act(transaction.objectStore(store));
    transaction.abort();
    expect(await ended(transaction)).toBe("abort");
    expect(await read(database, store)).toEqual(before);
    expect(table.writes).toBe(writes);
  });

  it("a transaction reads what it has written, and is complete only when the table has it", async () => {
    const { table, database } = await scene();
    const gate = Promise.withResolvers<void>();
    table.gate = gate.promise;
    const transaction = database.transaction(store, "readwrite");
    const told: string[] = [];
    for (const how of ["complete", "abort"]) transaction.addEventListener(how, () => told.push(how));
    const place = transaction.objectStore(store);
    place.put({ by: "new" }, "a");
    const answers = Promise.all([done(place.get("a")), done(place.index("by").getAllKeys())]);
    expect(await answers).toEqual([{ by: "new" }, ["b", "a"]]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Too late: it may be written by now.
    transaction.abort();
    expect(told).toEqual([]);
    gate.resolve();
    expect(await ended(transaction)).toBe("complete");
    expect(told).toEqual(["complete"]);
  });

  it("transactions that write follow one another", async () => {
    const { database, read } = await scene();
    const add = () => {
      const transaction = database.transaction(store, "readwrite");
      const place = transaction.objectStore(store);
      const request = place.get("n");
      request.addEventListener("success", () => place.put(((request.result as number | undefined) ?? 0) + 1, "n"));
      return ended(transaction);
    };
    await Promise.all(Array.from({ length: 20 }, add));
    expect((await read(database, store)).n).toBe(20);
  });

  it("a row that is there cannot be added: nothing of its transaction is written", async () => {
    const { database, read } = await scene();
    const transaction = database.transaction(store, "readwrite");
    const place = transaction.objectStore(store);
    place.put(5, "c");
    place.add(6, "a");
    expect(await ended(transaction)).toBe("abort");
    expect(await read(database, store)).toEqual(before);
  });

  it.each([new Map(), new Set(), new Uint8Array(2), { deep: [5n] }])(
    "a value that JSON would change (%s) is refused",
    async (value) => {
      const { database } = await scene();
      const place = database.transaction(store, "readwrite").objectStore(store);
      expect(() => place.put(value, "a")).toThrow("no JSON");
    },
  );

  it("whoever only reads writes nothing", async () => {
    const { database, read } = await scene();
    const transaction = database.transaction(store);
    transaction.objectStore(store).put(5, "a");
    expect(await ended(transaction)).toBe("abort");
    expect(await read(database, store)).toEqual(before);
  });
});

it("an upgrade that the table refuses is made at the next opening", async () => {
  const { table, open, read } = await scene();
  table.refuses = true;
  await expect(open(2)).rejects.toThrow();
  table.refuses = false;
  const upgraded = await open(2);
  expect(await read(upgraded, "new")).toEqual({ a: "there" });
  expect(await read(upgraded, "small")).toEqual(before);
});

it.each([1, 2, 3])(
  "random transactions, half of them refused, leave what those have written that were not (seed %i)",
  async (seed) => {
    const { table, database, open, read } = await scene();
    const roll = dice(seed);
    const one = <Item>(list: readonly Item[]): Item => list[Math.floor(roll() * list.length)] as Item;
    const model: Record<string, Record<string, unknown>> = { small: { ...before }, olm_hashes: { ...before } };
    let place = database;
    for (let n = 0; n < 200; n++) {
      const store = one(names);
      const [was, now] = [model[store] ?? {}, { ...model[store] }];
      table.refuses = roll() < 0.5;
      const transaction = place.transaction(store, "readwrite");
      const rows = transaction.objectStore(store);
      for (let step = 0; step < 1 + roll() * 4; step++) {
        const key = one(["a", "b", "c", "d"]);
        const what = roll();
        if (what < 0.6) {
          rows.put({ by: n }, key);
          now[key] = { by: n };
        } else if (what < 0.9) {
          rows.delete(key);
          delete now[key];
        } else {
          rows.clear();
          for (const name of Object.keys(now)) delete now[name];
        }
      }
      const isKept = (await ended(transaction)) === "complete";
      model[store] = isKept ? now : was;
      if (roll() < 0.1) place = await open();
      expect(await read(place, store)).toEqual(model[store]);
    }
  },
);
