import type { Database } from "../../adapters/database/connection.ts";
import { digest, type EventId, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { dropSummaries } from "./log-summary.ts";

/** Row of the outbox, sent or not, whose text showed a redacted event. */
export interface ShownTurn {
  readonly key: string;
  readonly roomId: RoomId;
  readonly sender: UserId;
}

export interface Redacted {
  /** Edits by the event's own sender that were not empty before. */
  readonly edits: readonly EventId[];
  /** Messages of ours that are taken back with it. */
  readonly shown: readonly ShownTurn[];
}

/** Contents whose words a redaction takes away, and those that it leaves standing. */
export interface EventWords {
  readonly contents: readonly Record<string, unknown>[];
  /** Beginnings of the texts of files that came with it. */
  readonly files: readonly string[];
  /** Input of the command that it was, unless that only read something. */
  readonly commanded: readonly Record<string, unknown>[];
  /** Content of the message without the edit that is redacted. */
  readonly standing: readonly Record<string, unknown>[];
}

/** Characters of a file whose words are looked for. */
const fileChars = 100_000;

/** Takes the place of a text that showed a redacted event and is on its way. */
export const takenBack = { text: "(removed, since something in it was redacted)" };

/** Reads what a redaction of this event takes away; called before `redactEvent`, which leaves nothing to read. */
export async function wordsOf(database: Database, target: EventId): Promise<EventWords> {
  const [row] = await database.run(
    (sql) => sql<EventWords[]>`
      with target as (
        select * from events where event_id = ${target}
      ), own as (
        select e.* from target t join events e on e.event_id = t.event_id or (e.replaces = t.event_id and e.sender = t.sender)
      ), edited as (
        select e.*, t.event_id as edit from target t join events e on e.event_id = t.replaces and e.sender = t.sender
      )
      select
        (select coalesce(jsonb_agg(c), '[]') from (
          select content as c from own union all select original from own where original is not null) texts) as contents,
        (select coalesce(jsonb_agg(left(text_content, ${fileChars})), '[]') from files
          where event_id = ${target} and text_content is not null) as files,
        (select coalesce(jsonb_agg(input), '[]') from operations
          where key = ${digest("command", target)} and by = 'person' and kind <> 'read') as commanded,
        (select coalesce(jsonb_agg(c), '[]') from (
          select original as c from edited where original is not null
          union all select e.content from edited d join events e on e.replaces = d.event_id and e.sender = d.sender
          where e.event_id <> d.edit and e.redacted_at is null) texts) as standing`,
  );
  if (!row) throw new Error("a query without a table gave no row");
  return row;
}

/**
 * Empties an event, its edits, and every kept render in which it, or the message that it edited, could be read, and
 * removes the files that came with it and the names that it gave; of an agent's own message also the row that sent it
 * and, unless it was a draft, what the ephemeris says of that turn. Rows of the outbox that show it lose their text.
 * Summaries of logs that may have been made from it are dropped.
 * @param prints fingerprints of its words: they mark that repetitions are still to be blanked, see `RedactionMarks`
 */
export async function redactEvent(database: Database, target: EventId, prints: readonly string[]): Promise<Redacted> {
  const [row] = await database.run(
    (sql) => sql<Redacted[]>`
      with concerned as (
        select array_agg(o.event_id) as ids from events e join events o
          on o.event_id = e.event_id or (o.event_id = e.replaces and o.sender = e.sender)
        where e.event_id = ${target}
      ), sent as (
        update outbox set content = '{}' where event_id = ${target} and state = 'sent' returning turn_id, key, kind
      ), unremembered as (
        delete from interactions where event_id = ${target} or origin_event = ${target}
          or turn_id in (select turn_id from sent where kind <> 'draft')
        returning id, shareable
      ), unshared as (
        select coalesce(array_agg(id) filter (where shareable), '{}') as ids from unremembered
      ), marked as (
        insert into redactions (event_id, places, since, prints, memories)
        select event_id, array[room_id], received_at, ${[...prints]}::text[], (select ids from unshared) from events
        where event_id = ${target} and cardinality(${[...prints]}::text[]) > 0
        on conflict (event_id) do nothing
      ), traced as (
        update redactions set memories = memories || (select ids from unshared) where event_id = ${target}
      ), emptied as (
        update events set content = '{}', original = null, media = null, redacted_at = coalesce(redacted_at, now())
        where event_id = ${target} or replaces = ${target}
      ), unnamed as (
        update room_state s set content = '{}' from events e
        where e.event_id = ${target} and s.room_id = e.room_id and s.type = e.type and s.position = e.position and e.state_key = ''
          and s.type in ('m.room.name', 'm.room.topic', 'm.room.canonical_alias')
      ), nameless as (
        update members m set display_name = null from events e
        where e.event_id = ${target} and e.type = 'm.room.member' and m.room_id = e.room_id and m.user_id = e.state_key
          and m.position = e.position
      ), unsent as (
        delete from uploads where key in (select key from sent)
      ), forgotten as (
        delete from ephemeris where turn_id in (select turn_id from sent where kind <> 'draft')
      ), deleted as (
        delete from files where event_id = ${target}
      ), erased as (
        delete from file_versions where event_id = ${target}
      ), undone as (
        update operations set input = '{}', summary = '', result = null, error = null
        where key = ${digest("command", target)} and by = 'person'
      ), unrun as (
        update sandbox_commands set command = '', outcome = outcome - 'stdout' - 'stderr'
        where key = ${digest("command", target)}
      ), awaited as (
        delete from sealed_events where event_id = ${target}
      ), unsaid as (
        update interactions set text = speaker || ': '
        where event_id = (select e.event_id from events o join events e on e.event_id = o.replaces and e.sender = o.sender
          where o.event_id = ${target}) returning id
      ), unembedded as (
        delete from interaction_vectors where interaction_id in (select id from unsaid)
      ), unsummarised as (
        ${dropSummaries(
          sql,
          sql`exists (select 1 from events e where e.event_id = ${target}
            and (c.log->'summary'->'sources' ? e.room_id or c.log->'prepared'->'summary'->'sources' ? e.room_id))`,
        )}
      ), unlearnt as (
        delete from knowledge where event_id = ${target}
      ), unoffered as (
        delete from knowledge_offers where event_id = ${target}
      ), unseen as (
        update renders set system = '', prompt = '' where event_ids && (select ids from concerned)
      ), shown as (
        update outbox set content = content || ${sql.json(takenBack)}::jsonb, wire = null
        where shows && (select ids from concerned) and event_id is distinct from ${target}
        returning key, room_id as "roomId", sender
      )
      select (select coalesce(jsonb_agg(o.event_id order by o.seq), '[]') from events e join events o
          on o.replaces = e.event_id and o.sender = e.sender
          where e.event_id = ${target} and o.redacted_at is null) as edits,
        (select coalesce(jsonb_agg(to_jsonb(s)), '[]') from shown s) as shown`,
  );
  if (!row) throw new Error("a query without a table gave no row");
  return row;
}
