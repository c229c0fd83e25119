import type { Database, Sql } from "../../adapters/database/connection.ts";
import { noteCalls } from "./activity.ts";
import { appendLines } from "./append.ts";
import type { FilePlace } from "./files.ts";
import { endOperations, type OperationRecord, recordOperations } from "./operation-record.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";
import { endWindows } from "./windows.ts";

/** An operation in whose middle its turn breaks off, and what is said of it. */
export interface BreakOff {
  /** Number of its step. */
  readonly n: number;
  readonly operation: OperationRecord;
  /** For the ephemeris. */
  readonly entry: string;
  readonly subAgent: string | undefined;
  readonly outbox: readonly OutboxDraft[];
  /** See `StepCommit`. */
  readonly logTo?: FilePlace | undefined;
}

/** Texts for a turn that did not end by itself. */
export interface LastWords {
  readonly outbox?: readonly OutboxDraft[];
  /** LMML, and the sub-agent whose call it concerns. */
  readonly ephemeris?: readonly { readonly entry: string; readonly subAgent: string | null }[];
  readonly recovery?: Recovery | undefined;
}

/** Trace of a turn that has failed, and the wake that lets the agent mend it. */
export interface Recovery {
  /** The agent's LOG.md, and the lines that are added to it. */
  readonly logTo: FilePlace;
  readonly lines: string;
  /** Undefined: the agent can do nothing about it. */
  readonly wake: RecoveryWake | undefined;
}

interface RecoveryWake {
  /** One error wakes the conversation once for a key, and none in a turn that was to mend another. */
  readonly key: string;
  /** LMML: instruction for the turn that begins. */
  readonly note: string;
}

/** Number of a step behind all others: of what is said of a turn that did not end by itself. */
const lastOfAll = 1_000_000;

/**
 * Records an operation in whose middle the turn breaks off, with what is said of it; nothing where whoever has ended the
 * turn has recorded it.
 */
export async function breakOff(
  database: Database,
  turn: { readonly id: number; readonly epoch: number },
  { n, operation, entry, outbox, subAgent, logTo }: BreakOff,
): Promise<void> {
  await database.run(
    (sql) => sql`
      with mine as (
        select t.*, a.user_id from turns t join agents a on a.name = t.agent where t.id = ${turn.id} and t.epoch = ${turn.epoch}
      ), ${recordOperations(sql, [operation], "mine")}
      ${logTo ? sql`, ${noteCalls(sql, logTo, [operation.key], "mine")}` : sql``}, sending as (
        ${insertOutbox(sql, outbox, "recorded", turn.id)}
      )
      insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint, place)
      select user_id, room_id, id, ${n}, 1, ${entry}, ${subAgent ?? null}, sources, taint, place from mine, recorded
      on conflict do nothing`,
  );
}

/** Ends a turn that did not end by itself, and what it was doing or waiting for; its drafts are taken back. */
export async function closeTurn(
  database: Database,
  turn: { readonly id: number },
  { state, error }: { readonly state: "failed" | "cancelled"; readonly error: string },
  { outbox = [], ephemeris = [], recovery }: LastWords,
): Promise<void> {
  const entries = ephemeris.map((last, index) => ({ part: index + 1, ...last }));
  await database.run(
    (sql) => sql`
      with closed as (
        update turns set state = ${state}, error = ${error}, ended_at = now()
        where id = ${turn.id} and state in ('running', 'parked', 'ready') returning *
      ), ${endOperations(sql, "closed", state === "failed" ? "failed" : "interrupted", error)}, ${endWindows(sql, "closed")},
      told as (
        insert into ephemeris (user_id, room_id, turn_id, n, part, entry, sub_agent, sources, taint, place)
        select a.user_id, c.room_id, c.id, ${lastOfAll}, e.part, e.entry, e."subAgent", c.sources, c.taint, c.place
        from closed c join agents a on a.name = c.agent,
          jsonb_to_recordset(${sql.json(entries)}) as e(part integer, entry text, "subAgent" text)
        order by e.part
        on conflict do nothing
      ), ${recovery ? sql`${recover(sql, recovery)},` : sql``} withdrawn as (
        insert into outbox (key, room_id, sender, kind, content, about)
        select d.key || '.withdrawn', d.room_id, d.sender, 'withdrawal', '{}', d.key
        from closed join outbox d on d.turn_id = closed.id and d.kind = 'draft'
        on conflict (key) do nothing
      )
      ${insertOutbox(sql, outbox, "closed", turn.id)}`,
  );
}

/** CTEs that write the error down and wake the conversation, for those for whom the turn has worked. */
const recover = (sql: Sql, { lines, logTo, wake }: Recovery) => sql`
  trace as (
    select a.user_id as owner, false as tainted, c.place, '{}'::text[] as sources, audience_of(c.room_id, a.owner) as audience,
      ${lines}::text as text from closed c join agents a on a.name = c.agent
  ), ${appendLines(sql, logTo, "trace")}${wake ? sql`, ${insertRecovery(sql, wake)}` : sql``}`;

const insertRecovery = (sql: Sql, { key, note }: RecoveryWake) => sql`
  recovering as (
    insert into wakes (key, agent, room_id, reason, requester, chain, note)
    select ${key} || coalesce(' ' || requester, ''), c.agent, c.room_id, 'recovery', requester,
      coalesce(c.chain, 'turn:' || c.id), ${note}
    from closed c left join lateral unnest(c.requesters) requester on true
    where not exists (select 1 from wakes w where w.turn_id = c.id and w.reason = 'recovery')
    on conflict (key) do nothing
  )`;
