import type { Database, Json } from "../../adapters/database/connection.ts";
import type { UserId } from "../../base/lib/ids.ts";
import { type AuditRow, type Change, insertAudit } from "./audit.ts";

export interface PermissionRow {
  readonly actor: string;
  /** null: taken away by hand, whatever the configuration says. */
  readonly level: string | null;
  /** User who set it by hand; null: the configuration. */
  readonly setBy: UserId | null;
  readonly setAt: Date;
}

export class PermissionTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  all(): Promise<PermissionRow[]> {
    return this.#database.run(
      (sql) =>
        sql<PermissionRow[]>`select actor, level, set_by as "setBy", set_at as "setAt" from permissions order by actor`,
    );
  }

  /**
   * Takes over what the configuration says now, wherever nobody has set anything else by hand. What was set by hand
   * and is the same as in the configuration is the configuration's again.
   */
  async configure(levels: Readonly<Record<string, string>>): Promise<void> {
    const given = Object.entries(levels).map(([actor, level]) => ({ actor, level }));
    await this.#database.run(
      (sql) => sql`
        with given as (
          select * from jsonb_to_recordset(${sql.json(given as unknown as Json)}) as g(actor text, level text)
        ), gone as (
          delete from permissions
          where (set_by is null or level is null) and actor not in (select actor from given)
        )
        insert into permissions (actor, level) select actor, level from given
        on conflict (actor) do update set level = excluded.level, set_by = null, set_at = now()
        where (permissions.set_by is null and permissions.level is distinct from excluded.level)
          or (permissions.set_by is not null and permissions.level = excluded.level)`,
    );
  }

  /**
   * Sets a level by hand (null: takes it away), and writes it into the audit; `change.before` is what the table has.
   * Undefined, and nothing is changed, where it would leave nobody who is named an admin by full id.
   */
  async set(
    actor: string,
    level: string | null,
    change: Omit<Change, "before" | "after" | "subject">,
  ): Promise<AuditRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<AuditRow[]>`
        with admins as (
          select actor from permissions
          where level = 'admin' and actor like '@%' and position('*' in actor) = 0 for update
        ), old as (
          select (select level from permissions where actor = ${actor}) as before
        ), changed as (
          insert into permissions (actor, level, set_by)
          select ${actor}, ${level}::text, ${change.actor} from old
          where not exists (select 1 from audit where key = ${change.key})
            and (${level === "admin"} or coalesce(before <> 'admin', true) or exists (select 1 from admins where actor <> ${actor}))
          on conflict (actor) do update set level = excluded.level, set_by = excluded.set_by, set_at = now()
          returning (select before from old) as before
        ), written as (
          ${insertAudit(sql, { ...change, subject: `permission of ${actor}`, after: level }, "changed")}
        )
        select * from written
        union all select actor, subject, before, after, at from audit where key = ${change.key}`,
    );
    return row;
  }
}
