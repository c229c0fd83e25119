import type { Database } from "../../adapters/database/connection.ts";
import { lineCount } from "../../base/lib/lines.ts";
import type { FilePlace } from "./files.ts";
import type { RedactionMark } from "./redaction-marks.ts";

/** A text that was written into a file after a redacted event had come: the file as it is, or what it was. */
export interface WrittenFile extends FilePlace {
  readonly version: number;
  readonly current: boolean;
  /** Names the write: see `FileSystem`. */
  readonly writeKey: string;
  /** It came with what an agent said. */
  readonly said: boolean;
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
  since({ eventId }: Pick<RedactionMark, "eventId">): Promise<WrittenFile[]> {
    return this.#database.run(
      (sql) => sql<WrittenFile[]>`
        with mark as (
          select since from redactions where event_id = ${eventId}
        ), written as (
          select share, path, version, true as current, write_key, event_id, owner, updated_at as at from files, mark
          where text_content is not null and write_key is not null and updated_at >= since
          union all
          select share, path, version, false, write_key, event_id, owner, written_at from file_versions, mark
          where text_content is not null and write_key is not null and written_at >= since
        )
        select share, path, version, current, write_key as "writeKey",
          event_id is not null and owner in (select user_id from agents) as said
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
  async replace({ share, path, version, current }: WrittenFile, text: string): Promise<void> {
    await this.#database.run((sql) =>
      current
        ? sql`
          update files set text_content = ${text}, line_count = ${lineCount(text)}, char_count = ${text.length}, version = version + 1
          where share = ${share} and path = ${path} and version = ${version}`
        : sql`
          update file_versions set text_content = ${text}
          where share = ${share} and path = ${path} and version = ${version}`,
    );
  }

  /** Keys of operations of these turns that may have written something. */
  async writes(turnIds: readonly number[]): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ key: string }[]>`
        select key from operations where turn_id = any (${turnIds.map(String)}::text[]::bigint[]) and kind <> 'read'`,
    );
    return rows.map(({ key }) => key);
  }
}
