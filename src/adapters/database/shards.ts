import type { Database, Sql } from "./connection.ts";

/** As many as rows in the table `shards`. */
export const shardCount = 64;

/** The shard of a room or agent. */
export const shardOf = (key: string): number => {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % shardCount;
};

interface Renewed {
  /** The shards that are held until the lease runs out, in order. */
  readonly held: readonly number[];
  /** Other processes that live. */
  readonly others: number;
  /** Another process has started under our name. */
  readonly isReplaced: boolean;
}

/** Proof that a session held a shard a moment ago: a statement is carried out only if it still does. */
export interface Proof {
  readonly shard: number;
  readonly session: string;
}

/** Time for which a dead process keeps its shards and turns. */
const leaseMs = 12_000;

/** Part of a statement, for a table with `until`. A lease that ends too late was given before the clock was set back. */
const isLive = (sql: Sql) => sql`(until > now() and until < now() + make_interval(secs => ${(2 * leaseMs) / 1000}))`;

const newLease = (sql: Sql) => sql`now() + make_interval(secs => ${leaseMs / 1000})`;

/** Part of a statement: whether a process lives whose session is in this column. */
export const sessionLives = (sql: Sql, column: string) =>
  sql`exists (select 1 from processes where session = ${sql(column)} and ${isLive(sql)})`;

/** Part of a statement: whether the time in this column was before this session, which lives, was started. */
export const isBeforeStart = (sql: Sql, column: string, session: string) =>
  sql`coalesce(${sql(column)} < (select started_at from processes where session = ${session}), false)`;

/** Part of a statement: whether the session holds the shard still. */
export const isStillHeld = (sql: Sql, { shard, session }: Proof) =>
  sql`exists (select 1 from shards where shard = ${shard} and session = ${session})`;

/** Leases on shards, and the processes that share them. All times are the database's. */
export class Shards {
  readonly #database: Database;
  readonly #me: { readonly name: string; readonly session: string };

  constructor(database: Database, me: { name: string; session: string }) {
    this.#database = database;
    this.#me = me;
  }

  /** Takes the place of whoever had our name, with all that it held. */
  async enter(): Promise<void> {
    const { name, session } = this.#me;
    await this.#database.run(
      (sql) => sql`
        with inherited as (
          update shards set session = ${session}, until = ${newLease(sql)} where name = ${name}
        )
        insert into processes (name, session, until) values (${name}, ${session}, ${newLease(sql)})
        on conflict (name) do update set session = excluded.session, until = excluded.until, started_at = now()`,
    );
  }

  /**
   * Holds for another while what is held, but for what is given back, and takes a fair share of what nobody holds.
   * One attempt: the caller asks again.
   */
  async renew(giveBack: readonly number[]): Promise<Renewed> {
    const { name, session } = this.#me;
    const { sql } = this.#database;
    const back = sql`(select n::int from jsonb_array_elements_text(${sql.json([...giveBack])}) as n)`;
    const [row] = await sql<Renewed[]>`
      with alive as (
        insert into processes (name, session, until) values (${name}, ${session}, ${newLease(sql)})
        on conflict (name) do update set until = excluded.until where processes.session = excluded.session
        returning name
      ), given_back as (
        update shards set name = null, session = null, until = null where session = ${session} and shard in ${back}
      ), kept as (
        update shards set until = ${newLease(sql)}
        where session = ${session} and shard not in ${back} and exists (select 1 from alive)
        returning shard
      ), others as (
        select count(*) as count from processes where name <> ${name} and ${isLive(sql)}
      ), taken as (
        update shards set name = ${name}, session = ${session}, until = ${newLease(sql)}
        where exists (select 1 from alive) and shard in (
          select shard from shards
          where (until is null or not ${isLive(sql)}) and session is distinct from ${session}
          order by shard
          limit greatest(0, ceil(${shardCount}::float8 / (1 + (select count from others))) - (select count(*) from kept))
          for update skip locked)
        returning shard
      ), forgotten as (
        delete from processes where name <> ${name} and until < now() - interval '1 day'
      )
      select coalesce((select jsonb_agg(shard order by shard) from (table kept union all table taken) h), '[]') as held,
        (select count from others) as others, not exists (select 1 from alive) as "isReplaced"`;
    if (!row) throw new Error("a query without a table gave no row");
    return row;
  }

  /** Gives everything back. */
  async leave(): Promise<void> {
    const { session } = this.#me;
    await this.#database.run(
      (sql) => sql`
        with given_back as (
          update shards set name = null, session = null, until = null where session = ${session}
        )
        delete from processes where session = ${session}`,
    );
  }
}
