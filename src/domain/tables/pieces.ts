import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId } from "../../base/lib/ids.ts";

export type PieceKind =
  | "ephemeris"
  | "operations"
  | "commands"
  | "steps"
  | "wakes"
  | "todos"
  | "schedules"
  | "queries"
  | "windows"
  | "knowledge"
  | "offers"
  | "interactions"
  | "events"
  | "attachments"
  | "thoughts";

/** A row that agents have made, with those of its texts that may repeat something. */
export interface Piece {
  readonly kind: PieceKind;
  readonly id: string;
  readonly texts: Readonly<Record<string, Json>>;
}

/** Agents and rooms whose rows are searched, beside the rows of turns. */
export interface Whereabouts {
  readonly agents: readonly AgentName[];
  readonly rooms: readonly RoomId[];
}

/** Newest events of a room that are read. */
const eventsMost = 5_000;

/** Finds rows outside of turns, newer than the redacted event, made by somebody who had been shown its places. */
export const piecesAround = (
  database: Database,
  { eventId }: { readonly eventId: EventId },
  { agents, rooms }: Whereabouts,
): Promise<Piece[]> =>
  database.run(
    (sql) => sql<Piece[]>`
    with mark as materialized (
      select r.*, coalesce(e.position, 0) as position from redactions r left join events e using (event_id) where event_id = ${eventId}
    ), those as materialized (
      select name, user_id, thoughts_room from agents where name = any (${[...agents]}::text[]) or user_id in (
        select user_id from members m, mark where m.room_id = any (mark.places) and m.kind = 'agent')
    ), speakers as (
      select user_id from those union select user_id from members where room_id = any (${[...rooms]}::text[]) and kind = 'bot'
    ), said as (
      select e.* from mark, speakers those, unnest(${[...rooms]}::text[]) room, lateral (
        (select * from events e where e.room_id = room and e.shown and e.position > mark.position and e.sender = those.user_id
          order by e.position desc limit ${eventsMost})
        union all
        (select * from events e where e.room_id = room and not e.shown and e.position > mark.position and e.sender = those.user_id
          order by e.position desc limit ${eventsMost})) e
      where e.redacted_at is null
    ), shown as (
      select e.* from mark, those, lateral (
        select * from events e where e.room_id = those.thoughts_room and not e.shown and e.position > mark.position
          and e.state_key is null and e.content ? 'body'
        order by e.position desc limit ${eventsMost}) e
    )
    ${operationPieces(sql)}, mark where by = 'person' and operations.created_at >= since
      and agent in (select name from those) and (operations.room_id = any (places) or sources && places)
    ${commandPieces(sql)}, mark where c.agent in (select name from those) and coalesce(c.ended_at, now()) >= since
      and (c.room_id = any (places) or c.sources && places)
    union all select 'todos', key, jsonb_build_object('name', name) from todos, mark
    where agent in (select name from those) and created_at >= since and (todos.room_id = any (places) or sources && places)
    union all select 'schedules', id::text, jsonb_build_object('text', text) from schedules, mark
    where agent in (select name from those) and created_at >= since
      and (schedules.room_id = any (places) or sources && places)
    union all select 'wakes', id::text, jsonb_build_object('note', note) from wakes, mark
    where agent in (select name from those) and turn_id is null and note is not null
      and (wakes.room_id = any (places) or sources && places)
    union all select 'windows', id::text, jsonb_build_object('title', title, 'src', src, 'arguments', arguments, 'content', content)
    from windows, mark
    where agent in (select name from those) and used_at >= since and (windows.room_id = any (places) or sources && places)
    union all select 'queries', id::text, jsonb_build_object('queries', queries) from windows, mark
    where agent in (select name from those) and used_at >= since and (windows.room_id = any (places) or sources && places)
    union all select 'knowledge', id::text, jsonb_build_object('text', text, 'source', source) from knowledge, mark
    where agent in (select name from those) and created_at >= since and sources && ${[...rooms]}::text[]
    union all select 'offers', key, jsonb_build_object('text', entry->0->'text', 'source', entry->0->'source')
    from knowledge_offers, mark
    where agent in (select name from those) and created_at >= since and entry->0->'sources' ?| ${[...rooms]}::text[]
    union all select 'interactions', id::text, jsonb_build_object('text', text) from interactions, mark
    where agent in (select name from those) and turn_id is null and at >= since
      and (interactions.room_id = any (mark.places) or sources && mark.places)
    union all select 'attachments', key, jsonb_build_object('text', content->>'text', 'shows', shows is not null,
      'roomId', outbox.room_id, 'sender', sender) from outbox, mark
    where kind = 'file' and outbox.room_id = any (${[...rooms]}::text[]) and created_at >= since and content->>'text' is not null
    union all select 'events', event_id, jsonb_build_object('content', content, 'roomId', room_id) from said
    union all select 'thoughts', event_id, jsonb_build_object('text', content->'body', 'roomId', room_id, 'sender', sender) from shown`,
  );

/** Part of a statement, behind others: commands in sandboxes as pieces; a condition on `c` follows. */
export const commandPieces = (sql: Sql) => sql`
  union all select 'commands', c.key, jsonb_build_object('command', c.command, 'outcome', c.outcome) from sandbox_commands c`;

/** Part of a statement: operations as pieces; a condition follows. */
export const operationPieces = (sql: Sql) => sql`
  select 'operations' as kind, operations.id::text as id, jsonb_build_object('summary', summary, 'input', input, 'result', result,
    'error', error, 'asked_because', asked_because, 'decided_because', decided_because) as texts
  from operations`;
