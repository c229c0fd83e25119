import type { Database, Sql } from "../../adapters/database/connection.ts";
import { type SandboxRow, sandboxColumns } from "./sandboxes.ts";

/** Whoever takes files from a backup, and has not ended that within this time, has died. */
const restoringMost = "5 minutes";
/** Files of a container whose conversation is on another host are kept for so long. */
const strayKept = "1 day";

/** A container on a host that is not its conversation's any more. */
interface Stray {
  readonly host: string;
  readonly name: string;
}

/** Condition on a row of sandboxes: its files may have changed since they were backed up. */
const isUnsaved = (sql: Sql) => sql`not is_bare
  and (backed_up_at is null or backed_up_at < greatest(used_at, coalesce(busy_at, used_at)))`;

/** Hosts on which sandboxes are, and what they leave behind there; backups from which they are made anew elsewhere. */
export class SandboxPlacements {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Places a sandbox on another host; what ran in it is lost. Returns undefined where it is not on the first one: somebody else
   * has moved it.
   */
  async move(name: string, from: string, to: string): Promise<SandboxRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<SandboxRow[]>`
        with moved as (
          update sandboxes set host = ${to}, is_awake = false, stopping_since = null, restoring_since = null,
            is_bare = backed_up_at is not null
          where name = ${name} and host = ${from} returning *
        ), ended as (
          update sandbox_commands c set outcome = '{"reason": "lost"}', ended_at = now() from moved m
          where c.agent = m.agent and c.room_id = m.room_id and c.outcome is null
        )
        select ${sql.unsafe(sandboxColumns)} from moved`,
    );
    return row;
  }

  /** Claims a sandbox whose files are to be taken from its backup. `done`: they are there; `taken`: somebody does it now. */
  async claimRestore(name: string): Promise<"ours" | "taken" | "done"> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isOurs: boolean; isBare: boolean }[]>`
        with claimed as (
          update sandboxes set restoring_since = now()
          where name = ${name} and is_bare
            and (restoring_since is null or restoring_since < now() - ${restoringMost}::interval)
          returning name
        )
        select exists (select 1 from claimed) as "isOurs",
          exists (select 1 from sandboxes where name = ${name} and is_bare) as "isBare"`,
    );
    if (row?.isOurs) return "ours";
    return row?.isBare ? "taken" : "done";
  }

  /** Gives a claim back: its files are there, or another is to try it. */
  async endRestore(name: string, isDone: boolean): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update sandboxes set restoring_since = null, is_bare = is_bare and not ${isDone} where name = ${name}`,
    );
  }

  /** Claims those that run, and were used since their last backup, which is so old: whoever gets one backs it up. */
  claimBackups(seconds: number): Promise<SandboxRow[]> {
    return this.#database.run(
      (sql) => sql<SandboxRow[]>`
        update sandboxes set backup_tried_at = now()
        where is_awake and ${isUnsaved(sql)}
          and coalesce(backup_tried_at, created_at) < now() - make_interval(secs => ${seconds})
        returning ${sql.unsafe(sandboxColumns)}`,
    );
  }

  /** Begins a backup. Returns false where nobody has used the sandbox since the last one. */
  async beginBackup(name: string): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) =>
        sql`update sandboxes set backup_tried_at = now() where name = ${name} and ${isUnsaved(sql)} returning name`,
    );
    return rows.length > 0;
  }

  /** The backup that was begun last is there. */
  async markBackedUp(name: string): Promise<void> {
    await this.#database.run((sql) => sql`update sandboxes set backed_up_at = backup_tried_at where name = ${name}`);
  }

  /** Notes a container that is no sandbox's any more, the first time it is found. */
  async addStray({ host, name }: Stray): Promise<void> {
    await this.#database.run(
      (sql) => sql`insert into stray_sandboxes (host, name) values (${host}, ${name}) on conflict do nothing`,
    );
  }

  /** Finds those on a host whose files were kept for long enough. */
  async oldStrays(host: string): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ name: string }[]>`
        select name from stray_sandboxes where host = ${host} and found_at < now() - ${strayKept}::interval`,
    );
    return rows.map(({ name }) => name);
  }

  /** Forgets one. Returns whether it was known. */
  async forgetStray({ host, name }: Stray): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`delete from stray_sandboxes where host = ${host} and name = ${name} returning name`,
    );
    return rows.length > 0;
  }
}
