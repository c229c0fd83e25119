import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { type Memory, rememberSteps } from "./interactions.ts";

/** Summary of what a conversation's log does not show any more. */
export interface LogSummary {
  readonly text: string;
  /** Rooms from which it was made, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts in them. */
  readonly taint: readonly string[];
  /** Place in history at which it was made. */
  readonly place: number;
}

/** Places from which a log goes on when it is cut, with the summary of what is left out then. */
export interface PreparedCut {
  readonly from: Readonly<Record<string, number>>;
  readonly leftOut: readonly string[];
  readonly brief: number;
  /** Number that the log's `cuts` have then. */
  readonly cuts: number;
  readonly summary: LogSummary;
}

interface NewCut extends Omit<PreparedCut, "summary">, Omit<LogSummary, "place"> {
  /** Turn that was shown what it is made from. */
  readonly turnId: number;
  readonly memory: Memory;
}

/**
 * Prepares the next cut of the log of the turn's conversation, and archives the summary. Returns false, and does nothing,
 * where the log was cut meanwhile, or something was redacted from which it was made.
 */
export async function prepareCut(
  database: Database,
  { turnId, memory, text, sources, taint, ...cut }: NewCut,
): Promise<boolean> {
  const [row] = await database.run(
    (sql) => sql<{ isDone: boolean }[]>`
      with put as (
        update conversations c set log = c.log || jsonb_build_object('prepared', ${sql.json(cut as unknown as Json)}::jsonb
          || jsonb_build_object('summary', jsonb_build_object('text', ${text}::text, 'sources', to_jsonb(${[...sources]}::text[]),
            'taint', to_jsonb(${[...taint]}::text[]), 'place', t.place)))
        from turns t
        where t.id = ${turnId} and c.agent = t.agent and c.room_id = t.room_id
          and coalesce((c.log->>'cuts')::integer, 0) = ${cut.cuts - 1}
          and not exists (
            select 1 from events e where e.room_id = any (${[...sources]}::text[]) and e.redacted_at >= t.started_at)
        returning t.agent, t.room_id, t.place
      ), origin as (
        select null::bigint as id, p.agent, p.room_id, array[a.user_id]::text[] as requesters,
          ${[...sources]}::text[] as sources, ${[...taint]}::text[] as taint, p.place
        from put p join agents a on a.name = p.agent
      ), ${rememberSteps(sql, [memory], "origin")}
      select exists (select 1 from put) as "isDone"`,
  );
  return row?.isDone ?? false;
}

/**
 * Expression: a log that replaces the one in the row of `conversations`. Summaries are taken from the row, so that none comes
 * back that was dropped meanwhile.
 */
export const nextLog = (sql: Sql) => sql`
  coalesce((excluded.log - 'summary' - 'prepared') || jsonb_strip_nulls(case
    when excluded.log->'cuts' = conversations.log->'prepared'->'cuts'
      then jsonb_build_object('summary', conversations.log->'prepared'->'summary')
    when excluded.log->'cuts' is not distinct from conversations.log->'cuts'
      then jsonb_build_object('summary', conversations.log->'summary', 'prepared', conversations.log->'prepared')
    else jsonb_build_object('summary', conversations.log->'summary') end), conversations.log)`;

/** Expression: a log without the summaries that the audience may not read. */
export const readableLog = (sql: Sql, mayShow: (summary: Fragment) => Fragment) => sql`
  log - array_remove(array[
    case when log->'summary' is not null and not ${mayShow(sql`log->'summary'`)} then 'summary' end,
    case when log->'prepared' is not null and not ${mayShow(sql`log->'prepared'->'summary'`)} then 'prepared' end], null)`;

/** Part of a statement: drops the summaries of logs for which a condition on their `conversations c` holds. */
export const dropSummaries = (sql: Sql, condition: Fragment) => sql`
  update conversations c set log = log - '{summary,prepared}'::text[]
  where (c.log ? 'summary' or c.log ? 'prepared') and ${condition}`;
