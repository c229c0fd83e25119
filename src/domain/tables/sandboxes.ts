import type { Database, Sql } from "../../adapters/database/connection.ts";
import { type Conversation, type RoomId, secret } from "../../base/lib/ids.ts";

/** Whoever had begun to stop a sandbox and has not ended it within this time, has died. */
const stoppingMost = "1 minute";

/** A sandbox as it was seen last. */
export interface SandboxRow extends Conversation {
  readonly name: string;
  readonly usedAt: Date;
  readonly isAwake: boolean;
}

const sandboxColumns = `agent, room_id as "roomId", name, used_at as "usedAt", is_awake as "isAwake"`;

/**
 * Condition on a row of sandboxes: a command in it has not ended, as far as we know. Its process may be away at the moment;
 * what nobody has asked about for a day is given up.
 */
const isAwaited = (sql: Sql) => sql`exists (
  select 1 from sandbox_commands c where c.agent = sandboxes.agent and c.room_id = sandboxes.room_id
    and c.outcome is null and not c.is_background and c.started_at > now() - interval '1 day')`;

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

  /** Counts a use, and tells if the sandbox was stopped since it was woken last. Returns undefined while somebody stops it. */
  async use({ agent, roomId }: Conversation, name: string): Promise<{ isAwake: boolean } | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isAwake: boolean }[]>`
        insert into sandboxes (agent, room_id, name) values (${agent}, ${roomId}, ${name})
        on conflict (agent, room_id) do update set used_at = now(), stopping_since = null
        where sandboxes.stopping_since is null or sandboxes.stopping_since < now() - ${stoppingMost}::interval
        returning is_awake as "isAwake"`,
    );
    return row;
  }

  /** It is still in use. */
  async touch(name: string): Promise<void> {
    await this.#database.run((sql) => sql`update sandboxes set used_at = now() where name = ${name}`);
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
          update sandboxes set is_awake = false, stopping_since = null, sources = '{}'
          where agent = ${agent} and room_id = ${roomId}
        )
        update sandbox_commands set outcome = '{"reason": "lost"}', ended_at = now()
        where agent = ${agent} and room_id = ${roomId} and outcome is null`,
    );
  }

  /**
   * Claims the sandboxes that nobody has used for so long, and in which nobody waits for the end of a command: whoever
   * gets a name stops it, then says so.
   */
  async claimIdle(seconds: number): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ name: string }[]>`
        update sandboxes set stopping_since = now()
        where is_awake and used_at < now() - make_interval(secs => ${seconds}) and not ${isAwaited(sql)}
          and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
        returning name`,
    );
    return rows.map(({ name }) => name);
  }

  /** Claims of these sandboxes the one that was not used for longest, and at least for so long. */
  async claimLongestIdle(names: readonly string[], seconds: number): Promise<string | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ name: string }[]>`
        update sandboxes set stopping_since = now()
        where name = (
          select name from sandboxes
          where name = any (${[...names]}::text[]) and used_at < now() - make_interval(secs => ${seconds}) and not ${isAwaited(sql)}
            and (stopping_since is null or stopping_since < now() - ${stoppingMost}::interval)
          order by used_at, name limit 1)
        returning name`,
    );
    return row?.name;
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

  /** Names of all there are. */
  async names(): Promise<Set<string>> {
    const rows = await this.#database.run((sql) => sql<{ name: string }[]>`select name from sandboxes`);
    return new Set(rows.map(({ name }) => name));
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
