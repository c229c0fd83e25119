import type { Database, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, UserId } from "../../base/lib/ids.ts";
import type { InteractionKind } from "./interactions.ts";
import { audience, isOpen, type Rememberer, wallCtes } from "./recall-walls.ts";

/** A memory as it leaves, or comes into, a database. */
export interface PortableMemory {
  /** Equal in every export of it. */
  readonly id: string;
  readonly kind: InteractionKind;
  readonly at: string;
  /** Null for the agent's home, and for a room that not everybody may know of. */
  readonly room: string | null;
  readonly event: string | null;
  readonly sender: string | null;
  readonly speaker: string | null;
  readonly tool: string | null;
  readonly text: string;
  readonly importance: number;
  readonly shareable: boolean;
  readonly taint: readonly string[];
  readonly fact: string | null;
}

/** A working file, like `PortableMemory`. */
export interface PortableFile {
  readonly room: string | null;
  readonly name: string;
  readonly text: string;
  readonly tainted: boolean;
}

/** Numbers of memories and working files: of those that may be read in a place, and of all that the agent has. */
export interface Extent {
  readonly open: number;
  readonly all: number;
  readonly openFiles: number;
  readonly allFiles: number;
}

interface Exported extends PortableMemory {
  /** Its place among those of the same moment. */
  readonly place: number;
  /** Number of all that might have been given. */
  readonly total: number;
}

/** Where an export goes on: only what is older, or stands before the place among those of that moment. */
export interface ExportEnd {
  readonly at: Date;
  /** 0 leaves out all of that moment. */
  readonly place: number;
}

/** Characters of a line beside its text. */
const lineOverhead = 350;

/** Condition on an interaction `i`: it says something, and no later fact has taken its place. */
const isStanding = (sql: Sql) => sql`(
  length(i.text) > length(i.speaker) + 2 and (i.fact_key is null or not exists (
    select 1 from interactions later where later.agent = i.agent and later.room_id = i.room_id
      and later.fact_key = i.fact_key and later.id > i.id)))`;

/** Time of an interaction `i`, as exactly as an export says it. */
const momentOf = (sql: Sql) => sql`date_trunc('milliseconds', i.at)`;

/** CTEs `theirs` and `blind`: rooms in which the agent is, and the stretches of them that it may not see. */
const ownRooms = (sql: Sql, { userId }: Rememberer) => sql`
  theirs as materialized (
    select m.room_id from members m join rooms r using (room_id)
    where m.user_id = ${userId} and m.membership = 'join' and r.kind = 'chat'
  ), blind as materialized (
    select room_id, since, until from theirs cross join lateral unseen_by(array[${userId}], room_id)
  )`;

/** Condition on an interaction `i`: it belongs to the agent's memory, whoever may read it. */
const isTheirs = (sql: Sql, { agent }: Rememberer) => sql`(
  i.agent = ${agent} or (i.agent is null and i.room_id in (select room_id from theirs) and not exists (
    select 1 from blind b where b.room_id = i.room_id and i.place >= b.since and i.place < b.until)))`;

/** CTEs `own_files` and `open_files`: the agent's working files, and those that may be read here. */
const workingFiles = (sql: Sql, { agent, userId }: Rememberer) => sql`
  own_files as materialized (
    select f.share, f.path, f.text_content as text, f.tainted, case when f.share = 'rooms' then f.root end as room, name
    from unnest(array['NOW.md', 'LOG.md', 'facts.json']) name, files f
    where f.text_content is not null and (
      (f.share = 'agents' and f.path = '/' || ${agent} || '/memory/' || name)
      or (f.share = 'rooms' and f.path = '/' || f.root || '/agents/' || ${agent} || '/memory/' || name and exists (
        select 1 from members m where m.room_id = f.root and m.user_id = ${userId} and m.membership = 'join')))
  ), open_files as materialized (
    select * from own_files f
    where case when f.room is null then '' = any ((select sources from open)::text[])
      else f.room in (select room_id from readable)
        and not exists (select 1 from too_early(${audience(sql)}, f.share, array[f.path])) end
  )`;

/** Reads memories of agents to be taken elsewhere, and takes in those from elsewhere. */
export class MemoryTransfers {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async extent(who: Rememberer): Promise<Extent> {
    const [row] = await this.#database.run(
      (sql) => sql<Extent[]>`
        with ${wallCtes(sql, who)}, ${ownRooms(sql, who)}, ${workingFiles(sql, who)}
        select (select count(*) from own_files) as "allFiles", (select count(*) from open_files) as "openFiles",
          count(*) as "all", count(*) filter (where ${isOpen(sql, who)}) as "open"
        from interactions i where ${isTheirs(sql, who)} and ${isStanding(sql)}`,
    );
    if (!row) throw new Error("a count gave no row");
    return row;
  }

  /** Memories that may be read in a place, the newest first: as many as have about so many characters together. */
  async newest(who: Rememberer, characters: number, before: ExportEnd | undefined): Promise<Exported[]> {
    return this.#database.run(
      (sql) => sql<Exported[]>`
        with ${wallCtes(sql, who)}, ${ownRooms(sql, who)}, those as (
          select i.id, sum(length(i.text) + ${lineOverhead}) over (order by ${momentOf(sql)} desc, i.id desc) as characters,
            count(*) over () as total
          from interactions i
          where ${isTheirs(sql, who)} and ${isStanding(sql)} and ${isOpen(sql, who)}
            and (${before?.at ?? null}::timestamptz is null
              or (${momentOf(sql)}, i.id) < (${before?.at ?? null}::timestamptz, ${before?.place ?? 0}::bigint))
        ), traced as (
          insert into shareable_recalls select i.id, ${who.here} from those t join interactions i using (id)
          where i.shareable and t.characters <= ${characters} on conflict do nothing
        )
        select coalesce(i.origin, (select id::text from installation limit 1) || '/' || i.id) as id, i.kind,
          to_char(i.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as at,
          case when i.origin is not null then i.origin_room
            when i.agent is null or i.sources <@ (select sources from open) then nullif(i.room_id, '') end as room,
          coalesce(i.event_id, i.origin_event) as event, i.sender, case when i.origin is null then i.speaker end as speaker,
          i.tool, substr(i.text, length(i.speaker) + 3) as text, round(i.importance::numeric, 2)::float8 as importance,
          i.shareable, i.taint, i.fact_key as fact, i.id as place,
          t.total
        from those t join interactions i using (id)
        where t.characters <= ${characters}
        order by ${momentOf(sql)} desc, i.id desc`,
    );
  }

  files(who: Rememberer): Promise<PortableFile[]> {
    return this.#database.run(
      (sql) => sql<PortableFile[]>`
        with ${wallCtes(sql, who)}, ${workingFiles(sql, who)}
        select room, name, text, tainted from open_files order by room nulls first, name`,
    );
  }

  /**
   * Takes in memories as the agent's own, for its owner alone: each once, and none that is known here already, or that was
   * taken back or forgotten here.
   */
  async takeIn(importer: Importer, memories: readonly PortableMemory[]): Promise<TakenIn> {
    const { agent, userId, requester, taint } = importer;
    const [row] = await this.#database.run(
      (sql) => sql<TakenIn[]>`
        with given as (
          select *, case when id ~ ('^' || (select id::text from installation limit 1) || '/[0-9]{1,18}$')
            then split_part(id, '/', 2)::bigint end as number
          from jsonb_to_recordset(${sql.json(memories as unknown as Json)}) as g(id text, kind text, at timestamptz, room text,
            event text, sender text, speaker text, tool text, text text, importance real)
        ), judged as materialized (
          select g.*, case
            when exists (select 1 from interactions i where i.agent = ${agent} and i.origin = g.id) then 'known'
            when exists (select 1 from interactions i where i.id = g.number and date_trunc('milliseconds', i.at) = g.at and (
              i.agent = ${agent} or (i.agent is null and exists (select 1 from members m
                where m.room_id = i.room_id and m.user_id = ${userId} and m.membership = 'join')))) then 'known'
            when g.number < (select max(id) from interactions) and not exists (
              select 1 from interactions i where i.id = g.number) then 'gone'
            when exists (select 1 from events e where e.event_id = g.event and e.redacted_at is not null) then 'gone'
            when exists (select 1 from interactions i join members m using (room_id)
              where i.event_id = g.event and m.user_id = ${userId} and m.membership = 'join') then 'known'
            else 'new' end as state
          from given g
        ), taken as (
          insert into interactions (kind, agent, room_id, tool, sender, at, sources, speaker, text, importance, requester, taint,
            origin, origin_room, origin_event)
          select kind, ${agent}, '', tool, sender, at, array[''], ${importedSpeaker},
            ${importedSpeaker} || ': ' || coalesce(speaker || ': ', '') || text, importance, ${requester}, ${[...taint]}::text[],
            id, room, event
          from judged where state = 'new' order by at
          on conflict do nothing
          returning id
        ), later as (
          insert into interactions_to_embed select id from taken on conflict do nothing
        )
        select (select count(*) from taken) as taken, count(*) filter (where state = 'gone') as gone,
          count(*) - count(*) filter (where state = 'gone') - (select count(*) from taken) as known
        from judged`,
    );
    if (!row) throw new Error("a count gave no row");
    return row;
  }
}

/** Stands before the texts of imported memories: who said them is known from the file alone. */
const importedSpeaker = "imported";

/** Somebody who imports into an agent's memory. */
interface Importer {
  readonly agent: AgentName;
  readonly userId: UserId;
  readonly requester: UserId;
  readonly taint: readonly string[];
}

/** Numbers of memories: taken in, known before, and taken back or forgotten here. */
export interface TakenIn {
  readonly taken: number;
  readonly known: number;
  readonly gone: number;
}
