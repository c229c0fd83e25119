import { callAfter } from "../../base/lib/clock.ts";
import type { Database } from "./connection.ts";

/** Counts of waiting rows now, and the age of the oldest in seconds; 0 where nothing waits. */
export interface Backlog {
  readonly events: number;
  readonly eventsAge: number;
  readonly wakes: number;
  readonly wakesAge: number;
  readonly outbox: number;
  readonly outboxAge: number;
  /** Encrypted events whose key has not come. */
  readonly sealed: number;
  readonly sealedAge: number;
  /** Memories, and entries of knowledge, without vectors; they wait for ever where memory is searched by words alone. */
  readonly memories: number;
  readonly memoriesAge: number;
}

/** One statement over partial indexes: for whoever looks, never on the way of a message. */
export async function backlogOf({ sql }: Database): Promise<Backlog> {
  const [row] = await sql<Backlog[]>`
    select e.count as events, e.age as "eventsAge", w.count as wakes, w.age as "wakesAge", o.count as outbox, o.age as "outboxAge",
      s.count as sealed, s.age as "sealedAge", m.count as memories, m.age as "memoriesAge"
    from
      (select count(*), coalesce(extract(epoch from now() - min(received_at)), 0)::float8 as age from events where routed_at is null) e,
      (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as age from wakes where turn_id is null) w,
      (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as age from outbox where state = 'pending') o,
      (select count(*), coalesce(extract(epoch from now() - min(since)), 0)::float8 as age from sealed_events) s,
      (select sum(count)::bigint as count, coalesce(extract(epoch from now() - min(since)), 0)::float8 as age from (
        select count(*), (select at from interactions where id = min(interaction_id)) as since from interactions_to_embed
        union all
        select count(*), (select created_at from knowledge where id = min(knowledge_id)) from knowledge_to_embed) u) m`;
  if (!row) throw new Error("a query without a table gave no row");
  return row;
}

/** The result within `ms`, or undefined: for questions whose answer nobody waits for longer. Never rejects. */
export async function within<Result>(ms: number, question: Promise<Result>): Promise<Result | undefined> {
  const late = Promise.withResolvers<undefined>();
  const forget = callAfter(ms, () => late.resolve(undefined));
  try {
    return await Promise.race([question, late.promise]);
  } catch {
    return undefined;
  } finally {
    forget();
  }
}
