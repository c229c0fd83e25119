import type { Sql } from "../../adapters/database/connection.ts";
import type { StoredEvent } from "./events.ts";

/** Operations between the making of a copy and its return; of those that people were asked about, the numbers are read. */
const numbersLeftOut = 1_000;

/**
 * Parts of a statement, after `routed`: an event of ours that no row of the outbox has sent was sent after the copy of
 * the database was made that goes on now. Operations are then numbered from another thousand on: people may still name
 * those of that time. The last part, `renumbered`, has to be read.
 * @param key that the event has
 */
export const noticeRestore = (sql: Sql, { content, sentAt }: StoredEvent, key: string) => {
  const { "org.clevernet.operation": number } = content;
  const named = Number.isSafeInteger(number) ? Number(number) : 0;
  return sql`
    unknown as (
      select 1 from routed where not exists (select 1 from outbox where key = ${key})
    ), noticed as (
      insert into restores select now() from unknown
      where not exists (select 1 from restores where noticed_at >= ${sentAt}::timestamptz) on conflict do nothing returning 1
    ), numbered as (
      select pg_get_serial_sequence('operations', 'id') as sequence, greatest(${named}::bigint,
        coalesce(pg_sequence_last_value(pg_get_serial_sequence('operations', 'id')), 0)) as last, ${named}::bigint as named
      from unknown
    ), renumbered as (
      select setval(sequence, ((last + ${numbersLeftOut}) / 1000 + 1) * 1000) as number from numbered
      where exists (select 1 from noticed) or named > coalesce(pg_sequence_last_value(sequence), 0)
    )`;
};
