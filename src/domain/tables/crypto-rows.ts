import type { Database } from "../../adapters/database/connection.ts";
import { RetryError } from "../../base/lib/errors.ts";
import type { UserId } from "../../base/lib/ids.ts";

/** A row of a device's memory; without a value it is to be deleted. */
export interface CryptoRow {
  readonly store: string;
  readonly key: string;
  readonly value: string | null;
}

/** Another process has opened the device: this one may neither read nor write it any more. */
export class NotOwner extends RetryError {
  constructor() {
    super("another process has taken this agent's device over");
  }
}

/** Memory of one device, as its owner of this epoch reads and writes it. */
export class CryptoRows {
  readonly #database: Database;
  readonly #userId: UserId;
  readonly #epoch: number;

  constructor(database: Database, userId: UserId, epoch: number) {
    this.#database = database;
    this.#userId = userId;
    this.#epoch = epoch;
  }

  /** All rows, but for those of these stores. */
  load(except: readonly string[]): Promise<CryptoRow[]> {
    return this.#database.run(
      (sql) => sql<CryptoRow[]>`
        select store, key, value from crypto_rows
        where user_id = ${this.#userId} and store <> all (${[...except]}::text[])`,
    );
  }

  async find(store: string, key: string): Promise<string | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ value: string }[]>`
        select value from crypto_rows where user_id = ${this.#userId} and store = ${store} and key = ${key}`,
    );
    return row?.value;
  }

  all(store: string): Promise<CryptoRow[]> {
    return this.#database.run(
      (sql) => sql<CryptoRow[]>`
        select store, key, value from crypto_rows where user_id = ${this.#userId} and store = ${store}`,
    );
  }

  /**
   * Writes all of these rows or none, in one statement.
   * @throws NotOwner where another process has opened the device meanwhile
   */
  async write(rows: readonly CryptoRow[]): Promise<void> {
    const [row] = await this.#database.run(
      (sql) => sql<{ owners: number }[]>`
        with mine as (
          select 1 from crypto_machines where user_id = ${this.#userId} and epoch = ${this.#epoch} for update
        ), given as (
          select * from jsonb_to_recordset(${sql.json(rows as never)}) as (store text, key text, value text)
        ), deleted as (
          delete from crypto_rows c using given g, mine
          where c.user_id = ${this.#userId} and c.store = g.store and c.key = g.key and g.value is null
        ), put as (
          insert into crypto_rows (user_id, store, key, value)
          select ${this.#userId}, g.store, g.key, g.value from given g, mine where g.value is not null
          on conflict (user_id, store, key) do update set value = excluded.value
        )
        select count(*)::int as owners from mine`,
    );
    if (row?.owners !== 1) throw new NotOwner();
  }
}
