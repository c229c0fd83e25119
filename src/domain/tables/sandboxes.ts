import type { Database, Sql } from "../../adapters/database/connection.ts";
import { type Conversation, type RoomId, secret } from "../../base/lib/ids.ts";

/** Whoever had begun to stop a sandbox and has not ended it within this time, has died. */
const stoppingMost = "1 minute";

/** A sandbox as it was seen last. */
export interface SandboxRow extends Conversation {
  readonly name: string;
  /** On which it is, by its name in the configuration. */
  readonly host: string;
  readonly usedAt: Date;
  readonly isAwake: boolean;
  /** Null: there is no backup of its files. */
  readonly backedUpAt: Date | null;
  /** It was placed anew, and its files are still to be taken from the backup. */
  readonly isBare: boolean;
}

/** A sandbox that has been quiet for a while. */
export interface RestingSandbox extends Conversation {
  /** A command was given to its background, and is not known to have ended. */
  readonly hasBackground: boolean;
}

/** Columns of a `SandboxRow`. */
export const sandboxColumns = `agent, room_id as "roomId", name, host, used_at as "usedAt", is_awake as "isAwake",
  backed_up_at as "backedUpAt", is_bare as "isBare"`;

/**
 * Condition on a row of sandboxes: a command in it has not ended, as far as we know. Its process may be away at the moment;
 * what nobody has asked about for a day is given up.
 */
const isAwaited = (sql: Sql) => sql`exists (
  select 1 from sandbox_commands c where c.agent = sandboxes.agent and c.room_id = sandboxes.room_id
    and c.outcome is null and not c.is_background and c.started_at > now() - interval '1 day')`;

/** The last moment at which somebody used it, or something in it was busy. */
const lastBusy = (sql: Sql) => sql`greatest(used_at, coalesce(busy_at, used_at))`;

/** Condition on a row of sandboxes: a command was given to its background, and is not known to have ended. */
const hasBackground = (sql: Sql) => sql`exists (
  select 1 from sandbox_commands c where c.agent = sandboxes.agent and c.room_id = sandboxes.room_id
    and c.outcome is null and c.is_background)`;

/** Sandboxes of conversations. Idle ones are judged by the database's clock. */
export class SandboxTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Random id of this installation, the same in all its processes. */
  async installation(): Promise<string> {
    for (;;) {
      const [row] = await this.#database.run(
        (sql) => sql<{ id: string }[]>`
          with made as (
            insert into sandbox_installation (id) select ${secret(16)} where not exists (select 1 from sandbox_installation)
            on conflict do nothing returning id
          )
          select id from sandbox_installation union all select id from made limit 1`,
      );
      // Another process may have made it just now.
      if (row) return row.id;
    }
  }

  /** Counts a use. `new`: it has to be claimed first; `stopping`: somebody stops it now. */
  async use({ agent, roomId }: Conversation): Promise<SandboxRow | "new" | "stopping"> {
    const [row] = await this.#database.run(
      (sql) => sql<SandboxRow[]>`
        update sandboxes set used_at = now(), stopping_since = null
        where agent = ${agent} and room_id = ${roomId}
          and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
        returning ${sql.unsafe(sandboxColumns)}`,
    );
    return row ?? ((await this.find({ agent, roomId })) ? "stopping" : "new");
  }

  /** Places a new sandbox on a host, unless somebody has done so. */
  async claim({ agent, roomId }: Conversation, name: string, host: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into sandboxes (agent, room_id, name, host) values (${agent}, ${roomId}, ${name}, ${host})
        on conflict (agent, room_id) do nothing`,
    );
  }

  /** It is still in use. */
  async touch(name: string): Promise<void> {
    await this.#database.run((sql) => sql`update sandboxes set used_at = now() where name = ${name}`);
  }

  /** Something in it goes on, though nobody uses it. */
  async markBusy(name: string): Promise<void> {
    await this.#database.run((sql) => sql`update sandboxes set busy_at = now() where name = ${name}`);
  }

  async markAwake(name: string): Promise<void> {
    await this.#database.run((sql) => sql`update sandboxes set is_awake = true where name = ${name}`);
  }

  /** It was stopped: whoever waits may use it, and its commands are over. */
  async markStopped(name: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with stopped as (
          update sandboxes set is_awake = false, stopping_since = null where name = ${name} returning agent, room_id
        )
        update sandbox_commands c set outcome = '{"reason": "stopped"}', ended_at = now() from stopped s
        where c.agent = s.agent and c.room_id = s.room_id and c.outcome is null`,
    );
  }

  /** Nothing is left of what was in it. */
  async markEmpty({ agent, roomId }: Conversation): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with emptied as (
          update sandboxes set is_awake = false, stopping_since = null, sources = '{}', backed_up_at = null, is_bare = false
          where agent = ${agent} and room_id = ${roomId}
        )
        update sandbox_commands set outcome = '{"reason": "lost"}', ended_at = now()
        where agent = ${agent} and room_id = ${roomId} and outcome is null`,
    );
  }

  /** Finds those that run, and that have been quiet for so long. */
  findResting(seconds: number): Promise<RestingSandbox[]> {
    return this.#database.run(
      (sql) => sql<RestingSandbox[]>`
        select agent, room_id as "roomId", ${hasBackground(sql)} as "hasBackground" from sandboxes
        where is_awake and stopping_since is null and ${lastBusy(sql)} < now() - make_interval(secs => ${seconds})`,
    );
  }

  /** Counts, by their host, those that were started, and that we have not stopped since. */
  async countAwake(): Promise<ReadonlyMap<string, number>> {
    const rows = await this.#database.run(
      (sql) => sql<{ host: string; count: number }[]>`
        select host, count(*)::integer as count from sandboxes where is_awake group by host`,
    );
    return new Map(rows.map(({ host, count }) => [host, count]));
  }

  /** Lists those of a host that were started, and that we have not stopped since; the one that was used last first. */
  awakeOn(host: string): Promise<SandboxRow[]> {
    return this.#database.run(
      (sql) => sql<SandboxRow[]>`
        select ${sql.unsafe(sandboxColumns)} from sandboxes where is_awake and host = ${host} order by used_at desc, name`,
    );
  }

  /**
   * Claims the sandboxes of these hosts that nobody has used for so long, and in which nobody waits for the end of a command: whoever
   * gets a name stops it, then says so.
   */
  claimIdle(seconds: number, hosts: readonly string[]): Promise<SandboxRow[]> {
    return this.#database.run(
      (sql) => sql<SandboxRow[]>`
        update sandboxes set stopping_since = now()
        where is_awake and host = any (${[...hosts]}::text[]) and not ${isAwaited(sql)}
          and ${lastBusy(sql)} < now() - make_interval(secs => ${seconds})
          and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
        returning ${sql.unsafe(sandboxColumns)}`,
    );
  }

  /**
   * Claims a sandbox that has to be stopped, whoever uses it, and ends its commands for this reason. Returns false where
   * somebody stops it already.
   */
  async claimGreedy(name: string): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        with claimed as (
          update sandboxes set stopping_since = now()
          where name = ${name} and is_awake and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
          returning agent, room_id
        ), ended as (
          update sandbox_commands c set outcome = '{"reason": "disk"}', ended_at = now() from claimed s
          where c.agent = s.agent and c.room_id = s.room_id and c.outcome is null
        )
        select 1 from claimed`,
    );
    return rows.length > 0;
  }

  /**
   * Claims of these sandboxes the one that was not used for longest, and at least for so long: `busy` seconds where a command
   * runs in its background.
   */
  async claimLongestIdle(
    names: readonly string[],
    { busy, quiet }: { readonly quiet: number; readonly busy: number },
  ): Promise<SandboxRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<SandboxRow[]>`
        update sandboxes set stopping_since = now()
        where name = (
          select name from sandboxes
          where name = any (${[...names]}::text[]) and not ${isAwaited(sql)}
            and used_at < now() - make_interval(secs => (case when ${hasBackground(sql)} then ${busy} else ${quiet} end)::double precision)
            and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
          order by ${hasBackground(sql)}, used_at, name limit 1)
        returning ${sql.unsafe(sandboxColumns)}`,
    );
    return row;
  }

  async find({ agent, roomId }: Conversation): Promise<SandboxRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<SandboxRow[]>`
        select ${sql.unsafe(sandboxColumns)} from sandboxes where agent = ${agent} and room_id = ${roomId}`,
    );
    return row;
  }

  /** Sources of all that may be in it. */
  async sources({ agent, roomId }: Conversation): Promise<RoomId[]> {
    const [row] = await this.#database.run(
      (sql) => sql<{ sources: RoomId[] }[]>`
        select sources from sandboxes where agent = ${agent} and room_id = ${roomId}`,
    );
    return row?.sources ?? [];
  }

  /** It may hold these from now on. */
  async hold({ agent, roomId }: Conversation, sources: readonly RoomId[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update sandboxes s set sources = (select coalesce(array_agg(distinct x), '{}') from unnest(s.sources || ${[...sources]}::text[]) x)
        where agent = ${agent} and room_id = ${roomId} and not (s.sources @> ${[...sources]}::text[])`,
    );
  }

  /** Host of each that there is, by its name. */
  async hosts(): Promise<ReadonlyMap<string, string>> {
    const rows = await this.#database.run(
      (sql) => sql<{ name: string; host: string }[]>`select name, host from sandboxes`,
    );
    return new Map(rows.map(({ name, host }) => [name, host]));
  }

  /** Finds those whose conversation is over: the agent was deleted, or has left the room. */
  findAbandoned(): Promise<SandboxRow[]> {
    return this.#database.run(
      (sql) => sql<SandboxRow[]>`
        select ${sql.unsafe(sandboxColumns)} from sandboxes s
        where exists (select 1 from agents a where a.name = s.agent and (a.deleted_at is not null
          or s.room_id <> '' and not exists (
            select 1 from members m where m.room_id = s.room_id and m.user_id = a.user_id and m.membership = 'join')))`,
    );
  }

  async remove({ agent, roomId }: Conversation): Promise<void> {
    await this.#database.run((sql) => sql`delete from sandboxes where agent = ${agent} and room_id = ${roomId}`);
  }
}
