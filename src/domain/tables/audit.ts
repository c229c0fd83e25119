import type { Database, Sql } from "../../adapters/database/connection.ts";
import type { UserId } from "../../base/lib/ids.ts";

/** Change that a person is about to make. Texts are for people; null is nothing. */
export interface Change {
  /** Equal for one command, however often it is run. */
  readonly key: string;
  readonly actor: UserId;
  readonly subject: string;
  readonly before: string | null;
  readonly after: string | null;
}

export interface AuditRow extends Omit<Change, "key"> {
  readonly at: Date;
}

const columns = "actor, subject, before, after, at";

/** Part of a statement: writes the change down, with what was before, for each row of the table `changed (before)`. */
export const insertAudit = (sql: Sql, change: Omit<Change, "before">, changed: string) => sql`
  insert into audit (key, actor, subject, before, after)
  select ${change.key}, ${change.actor}, ${change.subject}, before, ${change.after} from ${sql(changed)}
  on conflict (key) do nothing
  returning ${sql.unsafe(columns)}`;

/** Record of who changed what. */
export class Audit {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Written before the change is made. Returns the first record of this key: after a death it says what was before. */
  async record(change: Change): Promise<AuditRow> {
    const known = await this.find(change.key);
    if (known) return known;
    await this.#database.run(
      (sql) => sql`with changed as (select ${change.before}::text as before) ${insertAudit(sql, change, "changed")}`,
    );
    const row = await this.find(change.key);
    if (!row) throw new Error("the audit lost a row");
    return row;
  }

  async find(key: string): Promise<AuditRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<AuditRow[]>`select ${sql.unsafe(columns)} from audit where key = ${key}`,
    );
    return row;
  }

  /** The newest first. */
  newest(limit: number): Promise<AuditRow[]> {
    return this.#database.run(
      (sql) => sql<AuditRow[]>`select ${sql.unsafe(columns)} from audit order by id desc limit ${limit}`,
    );
  }
}
