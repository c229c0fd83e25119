import type { Database } from "../../adapters/database/connection.ts";
import { type ForgettableText, type ForgottenWords, mayHave, nextOf, type ToForget, unseenBy } from "./forgetting.ts";

/** Finds knowledge of agents that was kept in a room or comes from it, the newest first. */
export const findKnowledgeToForget = (
  database: Database,
  what: ToForget,
  below: number | undefined,
): Promise<ForgettableText[]> =>
  database.run(
    (sql) => sql<ForgettableText[]>`
      select k.id, k.title || E'\n' || k.text as text from knowledge k left join events e on e.event_id = k.event_id
      where k.agent = any (${[...what.agents]}::text[]) and (k.room_id = ${what.roomId} or ${what.roomId} = any (k.sources))
        and (${what.by ?? null}::text is null or k.requester = ${what.by ?? null} or e.sender = ${what.by ?? null})
        ${nextOf(sql, what, { below, id: sql`k.id`, text: sql`(k.title || ' ' || k.text)` })}`,
  );

/**
 * Forgets knowledge, and empties the renders in which it may be read. What else is known of the same file is not cut anew
 * any more. Marks that repetitions of the words are still to be blanked.
 */
export async function forgetKnowledge(
  database: Database,
  ids: readonly number[],
  { key, prints }: ForgottenWords,
): Promise<void> {
  await database.run(
    (sql) => sql`
      with meant as materialized (
        select * from knowledge where id = any (${ids.map(String)}::text[]::bigint[])
      ), unlearnt as (
        delete from knowledge where id in (select id from meant)
      ), unfollowed as (
        update knowledge k set is_followed = false
        from (select distinct agent, share, path from meant where path is not null) f
        where k.agent = f.agent and k.share = f.share and k.path = f.path and k.id not in (select id from meant)
      ), marked as (
        insert into redactions (event_id, places, since, prints)
        select ${key}, array(select distinct known from meant, unnest(sources || room_id) known where known is not null),
          (select min(created_at) from meant), ${[...prints]}::text[]
        where exists (select 1 from meant) and cardinality(${[...prints]}::text[]) > 0
        on conflict (event_id) do nothing
      ), gone as (
        select m.agent, min(t.id) as turn_id
        from (select agent, min(created_at) as at from meant group by agent) m
          join turns t on t.agent = m.agent and (t.ended_at is null or t.ended_at >= m.at)
        group by m.agent
      ), ${unseenBy(sql)}`,
  );
}

/** Summary that people were asked about whether an agent shall keep it. */
interface OfferedText {
  readonly key: string;
  readonly text: string;
}

/** Finds what agents have offered to keep in a room. It is there for a day only. */
export const findOffersToForget = (
  database: Database,
  { agents, by, roomId, words }: ToForget,
): Promise<OfferedText[]> =>
  database.run(
    (sql) => sql<OfferedText[]>`
      select key, text from (
        select key, concat(entry->0->>'title', E'\n', entry->0->>'text') as text from knowledge_offers
        where agent = any (${[...agents]}::text[]) and room_id = ${roomId}
          and (${by ?? null}::text is null or entry->0->>'requester' = ${by ?? null})) offered
      where ${mayHave(sql, sql`text`, words)}`,
  );

export async function forgetOffers(database: Database, keys: readonly string[]): Promise<void> {
  await database.run((sql) => sql`delete from knowledge_offers where key = any (${[...keys]}::text[])`);
}
