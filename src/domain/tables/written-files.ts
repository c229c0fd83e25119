import type { Database } from "../../adapters/database/connection.ts";
import { lineCount } from "../../base/lib/lines.ts";
import type { FilePlace } from "./files.ts";
import type { RedactionMark } from "./redaction-marks.ts";
import { statePaths } from "./state-names.ts";

/** A text that was written into a file after a redacted event had come: the file as it is, or what it was. */
export interface WrittenFile extends FilePlace {
  readonly version: number;
  readonly isCurrent: boolean;
  /** Names the write: see `FileSystem`. */
  readonly writeKey: string | null;
  /** True if it came with a message of an agent. */
  readonly isSaid: boolean;
}

/** The first writing at a path, or below it. */
export interface FirstWriting extends FilePlace {
  readonly writeKey: string | null;
  /** True if it came with a message of an agent. */
  readonly isSaid: boolean;
  /** A redacted event had come before it. */
  readonly isNewer: boolean;
}

/** Newest files that are looked through. */
const filesMost = 2_000;

/** Files in which redacted words may be repeated. */
export class WrittenFiles {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** The newest first. */
  findSince({ eventId }: Pick<RedactionMark, "eventId">): Promise<WrittenFile[]> {
    return this.#database.run(
      (sql) => sql<WrittenFile[]>`
        with mark as (
          select since from redactions where event_id = ${eventId}
        ), written as (
          select share, path, version, true as current, write_key, event_id, owner, updated_at as at from files, mark
          where text_content is not null and (write_key is not null or path ~ ${statePaths}) and updated_at >= since
          union all
          select share, path, version, false, write_key, event_id, owner, written_at from file_versions, mark
          where text_content is not null and (write_key is not null or path ~ ${statePaths}) and written_at >= since
        )
        select share, path, version, current as "isCurrent", write_key as "writeKey",
          event_id is not null and owner in (select user_id from agents) as "isSaid"
        from written order by at desc limit ${filesMost}`,
    );
  }

  /** The text, and what was in the file when the event came; undefined where that version is no more. */
  async read(
    { share, path, version }: WrittenFile,
    { eventId }: Pick<RedactionMark, "eventId">,
  ): Promise<{ text: string; before: string } | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ text: string; before: string }[]>`
        select text_content as text, coalesce((
          select v.text_content from file_versions v, redactions r
          where r.event_id = ${eventId} and v.share = ${share} and v.path = ${path} and v.written_at < r.since
          order by v.version desc limit 1), '') as before
        from (
          select text_content from files where share = ${share} and path = ${path} and version = ${version}
          union all
          select text_content from file_versions where share = ${share} and path = ${path} and version = ${version}
        ) t`,
    );
    return row;
  }

  /** Puts a text in place of this version's, of which nothing is kept; not where another was written meanwhile. */
  async replace({ share, path, version, isCurrent }: WrittenFile, text: string): Promise<void> {
    await this.#database.run((sql) =>
      isCurrent
        ? sql`
          update files set text_content = ${text}, line_count = ${lineCount(text)}, char_count = ${text.length}, version = version + 1
          where share = ${share} and path = ${path} and version = ${version}`
        : sql`
          update file_versions set text_content = ${text}
          where share = ${share} and path = ${path} and version = ${version}`,
    );
  }

  /** Paths of files and folders that were written after the event had come, also of those that are no more. */
  paths({ eventId }: Pick<RedactionMark, "eventId">): Promise<FilePlace[]> {
    return this.#database.run(
      (sql) => sql<FilePlace[]>`
        select share, path from (
          select share, path, updated_at as at from files
          where updated_at >= (select since from redactions where event_id = ${eventId})
          union all
          select share, path, written_at from file_versions
          where written_at >= (select since from redactions where event_id = ${eventId})
        ) written group by share, path order by max(at) desc limit ${filesMost}`,
    );
  }

  async first(
    { share, path }: FilePlace,
    { eventId }: Pick<RedactionMark, "eventId">,
  ): Promise<FirstWriting | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<FirstWriting[]>`
        select share, path, write_key as "writeKey", event_id is not null and owner in (select user_id from agents) as "isSaid",
          at >= (select since from redactions where event_id = ${eventId}) as "isNewer"
        from (
          select share, path, version, write_key, event_id, owner, created_at as at from files
          where share = ${share} and (path = ${path} or starts_with(path, ${`${path}/`}))
          union all
          select share, path, version, write_key, event_id, owner, written_at from file_versions
          where share = ${share} and (path = ${path} or starts_with(path, ${`${path}/`}))
        ) written order by at, version limit 1`,
    );
    return row;
  }

  /**
   * Gives a file, or a folder with all that is below it, another path: also what was there, and the messages that it came
   * with. Windows on it are closed. Returns false, and does nothing, where something is at the new path.
   */
  async rename({ share, path }: FilePlace, to: string): Promise<boolean> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isFree: boolean }[]>`
        with free as materialized (
          select 1 where not exists (select 1 from files where share = ${share} and (path = ${to} or starts_with(path, ${`${to}/`})))
            and not exists (select 1 from file_versions where share = ${share} and (path = ${to} or starts_with(path, ${`${to}/`})))
        ), moved as (
          update files set path = ${to} || substr(path, length(${path}) + 1) from free
          where share = ${share} and (path = ${path} or starts_with(path, ${`${path}/`}))
        ), past as (
          update file_versions set path = ${to} || substr(path, length(${path}) + 1) from free
          where share = ${share} and (path = ${path} or starts_with(path, ${`${path}/`}))
        ), closed as (
          delete from windows using free where src = ${`${share}:${path}`} or starts_with(src, ${`${share}:${path}/`})
        ), brought as (
          update events set media = jsonb_set(media, '{path}', to_jsonb(${`${share}:${to}`} || substr(media->>'path', length(${`${share}:${path}`}) + 1)))
          from free where event_id in (
              select event_id from files where share = ${share} and (path = ${path} or starts_with(path, ${`${path}/`})))
            and (media->>'path' = ${`${share}:${path}`} or starts_with(media->>'path', ${`${share}:${path}/`}))
        )
        select exists (select 1 from free) as "isFree"`,
    );
    return row?.isFree ?? false;
  }

  /** Keys of operations of these turns that may have written something. */
  async writeKeys(turnIds: readonly number[]): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ key: string }[]>`
        select key from operations where turn_id = any (${turnIds.map(String)}::text[]::bigint[]) and kind <> 'read'`,
    );
    return rows.map(({ key }) => key);
  }
}
