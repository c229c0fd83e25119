import type { Database } from "../../adapters/database/connection.ts";
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
}

/** Texts for a turn that did not end by itself. */
export interface LastWords {
  readonly outbox?: readonly OutboxDraft[];
  /** LMML, and the sub-agent whose call it concerns. */
  readonly ephemeris?: readonly { readonly entry: string; readonly subAgent: string | null }[];
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
  { n, operation, entry, outbox, subAgent }: BreakOff,
): Promise<void> {
  await database.run(
    (sql) => sql`
      with mine as (
        select t.*, a.user_id from turns t join agents a on a.name = t.agent where t.id = ${turn.id} and t.epoch = ${turn.epoch}
      ), ${recordOperations(sql, [operation], "mine")}, sending as (
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
  { outbox = [], ephemeris = [] }: LastWords,
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
      ), withdrawn as (
        insert into outbox (key, room_id, sender, kind, content, about)
        select d.key || '.withdrawn', d.room_id, d.sender, 'withdrawal', '{}', d.key
        from closed join outbox d on d.turn_id = closed.id and d.kind = 'draft'
        on conflict (key) do nothing
      )
      ${insertOutbox(sql, outbox, "closed", turn.id)}`,
  );
}
