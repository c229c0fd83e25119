import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { FilePlace } from "./files.ts";

/** File of which knowledge is, in the version that was read. */
interface KnownFile extends FilePlace {
  readonly version: number;
}

/** Conversation in which something was kept, and the person for whom, as far as they are known: by them it is forgotten. */
export interface Keeping {
  readonly agent: AgentName;
  readonly roomId?: RoomId | null | undefined;
  readonly requester?: UserId | null | undefined;
}

/** Origin of knowledge, and the people who may be shown it. */
export interface KnowledgeOrigin extends Keeping {
  /** Name of the file, or what somebody calls it. */
  readonly title: string;
  /** Rooms, users ('@…') and the home ('') from which it comes, as `may_read` takes them; none where there is no wall. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts from which it was made. */
  readonly taint: readonly string[];
  /** The event that it came with: its redaction removes it. */
  readonly eventId: EventId | null;
  readonly file?: KnownFile | undefined;
}

/** Text that an agent keeps. */
export interface KnowledgeEntry {
  /** `fileChunk:{path}[{index}]`, `fileSummary:{path}`, `web:{address}[{index}]` or `user:{title}`; an agent has one entry of each. */
  readonly source: string;
  readonly text: string;
  /** Lines of the file in which it stands. */
  readonly lines?: { readonly first: number; readonly last: number };
}

/** Sections of a file that has changed since an agent kept them. */
export interface OutdatedFile extends KnownFile, Keeping {
  /** Text of the file now. */
  readonly text: string;
  readonly isTainted: boolean;
  readonly eventId: EventId | null;
  readonly sources: readonly RoomId[];
}

/** Files that are indexed anew at once. */
const outdatedAtOnce = 10;
/** Entries that are forgotten at once. */
const forgottenAtOnce = 1_000;

/** Knowledge of agents, an entry per source. */
export class Knowledge {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Keeps texts by their sources, each in place of what the agent has from that source. They get vectors later.
   * @param inPlaceOf whatever else the agent has from sources that begin so is forgotten
   */
  async keep(entries: readonly KnowledgeEntry[], origin: KnowledgeOrigin, inPlaceOf?: string): Promise<void> {
    await this.#keep(entries, origin, inPlaceOf, (sql) => sql`true`);
  }

  /** Keeps sections of a file anew, like `keep`, if the file is still as it was when it was read. */
  async keepAnew(entries: readonly KnowledgeEntry[], origin: KnowledgeOrigin, inPlaceOf: string): Promise<void> {
    const { share, path, version } = origin.file ?? { share: "", path: "", version: 0 };
    // Somebody may have had them forgotten meanwhile.
    await this.#keep(
      entries,
      origin,
      inPlaceOf,
      (sql) => sql`
        exists (select 1 from files where share = ${share} and path = ${path} and version = ${version})
        and exists (
          select 1 from knowledge where agent = ${origin.agent} and starts_with(source, ${inPlaceOf}) and is_followed)`,
    );
  }

  async #keep(
    entries: readonly KnowledgeEntry[],
    origin: KnowledgeOrigin,
    inPlaceOf: string | undefined,
    condition: (sql: Sql) => Fragment,
  ): Promise<void> {
    const sources = entries.map(({ source }) => source);
    await this.#database.run(
      (sql) => sql`
        with wanted as (
          select 1 where ${condition(sql)}
            and not exists (select 1 from events where event_id = ${origin.eventId} and redacted_at is not null)
        ), superseded as (
          delete from knowledge using wanted
          where agent = ${origin.agent} and starts_with(source, ${inPlaceOf ?? null}) and source <> all (${sources}::text[])
        ), ${keepRows(sql, sql`select r.* from wanted, ${rowsOf(sql, sql.json(storedRows(entries, origin)))}`)}
        select 1`,
    );
  }

  /** Finds files that have changed since sections of them were kept. */
  outdated(): Promise<OutdatedFile[]> {
    return this.#database.run(
      (sql) => sql<OutdatedFile[]>`
        select k.agent, k.room_id as "roomId", k.requester, f.share, f.path, f.version, f.text_content as text, f.tainted as "isTainted",
          f.event_id as "eventId", array(select distinct unnest(k.sources || f.sources)) as sources
        from (
          select distinct agent, k.room_id, k.requester, share, path, k.sources from knowledge k join files f using (share, path)
          where k.source like 'fileChunk:%' and k.is_followed and k.version is distinct from f.version and f.text_content is not null
          limit ${outdatedAtOnce}
        ) k join files f using (share, path)`,
    );
  }

  /** Forgets what was kept of files that are no more, and cannot be restored. Returns whether there may be more. */
  async forgetGone(): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        delete from knowledge where id in (
          select id from knowledge k
          where k.path is not null and k.version is distinct from 0
            and not exists (select 1 from files f where f.share = k.share and f.path = k.path)
            and not exists (select 1 from file_versions v where v.share = k.share and v.path = k.path)
          limit ${forgottenAtOnce})
        returning 1`,
    );
    return rows.length === forgottenAtOnce;
  }
}

/** Rows of `knowledge`, as they stand in a statement. */
export const storedRows = (entries: readonly KnowledgeEntry[], origin: KnowledgeOrigin): Json => {
  const { file, ...shared } = origin;
  const rows = entries.map(({ lines, ...entry }) => ({ ...shared, ...file, ...entry, ...lines }));
  return rows as unknown as Json;
};

/** Table `r` of such rows. */
export const rowsOf = (sql: Sql, rows: Fragment | ReturnType<Sql["json"]>) => sql`
  jsonb_to_recordset(${rows}) as r(agent text, source text, text text, title text, sources text[], taint text[],
    "eventId" text, "roomId" text, requester text, share text, path text, version integer, first integer, last integer)`;

/**
 * CTEs `kept` and `kept_later`: rows as of `rowsOf` are knowledge from now on, and those that are new, or say something
 * else now, are to be embedded.
 */
export const keepRows = (sql: Sql, rows: Fragment) => sql`
  kept as (
    insert into knowledge (agent, source, text, title, sources, taint, event_id, room_id, requester, share, path, version,
      first_line, last_line)
    select agent, source, text, title, sources, taint, "eventId", "roomId", requester, share, path, version, first, last from (${rows}) r
    on conflict (agent, source) do update set text = excluded.text, title = excluded.title, sources = excluded.sources,
      taint = excluded.taint, event_id = excluded.event_id, room_id = excluded.room_id, requester = excluded.requester,
      is_followed = true, share = excluded.share, path = excluded.path,
      version = excluded.version, first_line = excluded.first_line, last_line = excluded.last_line,
      place = excluded.place, created_at = now()
    returning id, text, title
  ), kept_later as (
    insert into knowledge_to_embed
    select kept.id from kept left join knowledge k on k.id = kept.id
    where k.text is distinct from kept.text or k.title is distinct from kept.title
    on conflict do nothing
  )`;
