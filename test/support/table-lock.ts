import type { Database } from "../../src/adapters/database/connection.ts";
import { eventually } from "./poll.ts";

/** Holds back whoever writes into a table of PostgreSQL. */
export interface TableLock {
  /** Resolves when somebody waits. */
  reached(): Promise<void>;
  /** Ends the sessions that wait: what they were about to do is not done. For those whose process was killed. */
  endWaiting(): Promise<void>;
  release(): Promise<void>;
}

export async function lockTable({ sql }: Database, table: string): Promise<TableLock> {
  const session = await sql.reserve();
  await session`begin`;
  await session`lock table ${session(table)} in exclusive mode`;
  const waiting = () => sql<{ pid: number }[]>`
    select pid from pg_locks where relation = ${table}::text::regclass and not granted
      and database = (select oid from pg_database where datname = current_database())`;
  return {
    async reached() {
      await eventually(async () => (await waiting()).length > 0, { what: `somebody who writes into ${table}` });
    },
    async endWaiting() {
      for (const { pid } of await waiting()) await sql`select pg_terminate_backend(${pid}::integer)`;
      await eventually(async () => (await waiting()).length === 0, { what: "nobody to wait" });
    },
    async release() {
      await session`rollback`;
      session.release();
    },
  };
}
