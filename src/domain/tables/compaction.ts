import type { Database } from "../../adapters/database/connection.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import type { FilePlace } from "./files.ts";
import { type Memory, rememberSteps } from "./interactions.ts";

/** A LOG.md of which the beginning is replaced. */
export interface Compaction extends FilePlace {
  /** Its beginning, as it was summarised. */
  readonly prefix: string;
  /** Lines that stand there from now on. */
  readonly lines: string;
  /** The summary, as it is archived. */
  readonly memory: Memory;
}

/** Reads files that are summarised, and puts the summary in their place. */
export class Compactions {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the beginning of a file, and counts all its bytes; undefined where there is no text. */
  async read({ share, path }: FilePlace, chars: number): Promise<{ text: string; bytes: number } | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<{ text: string; bytes: number }[]>`
        select left(text_content, ${chars}) as text, octet_length(text_content) as bytes
        from files where share = ${share} and path = ${path} and text_content is not null`,
    );
    return row;
  }

  /**
   * Replaces the beginning of the file, and archives the summary behind the walls of the file, in one statement: lines that
   * were added meanwhile stay. Returns false, and does nothing, where the beginning is not as it was any more.
   */
  async compact({ agent, roomId }: Conversation, compaction: Compaction): Promise<boolean> {
    const { share, path, prefix, lines, memory } = compaction;
    const [row] = await this.#database.run(
      (sql) => sql<{ isDone: boolean }[]>`
        with target as materialized (
          select * from files where share = ${share} and path = ${path} and starts_with(text_content, ${prefix}) for update
        ), former as (
          insert into file_versions (share, path, version, content_type, text_content, owner, event_id, write_key, tainted, sources, place, written_at)
          select share, path, version, content_type, text_content, owner, event_id, write_key, tainted, sources, place, updated_at from target
          on conflict do nothing
        ), compacted as (
          update files f set text_content = ${lines} || substr(f.text_content, length(${prefix}::text) + 1), version = f.version + 1,
            line_count = null, char_count = null, updated_at = now()
          from target t where f.id = t.id returning f.path, f.tainted, f.sources, f.place
        ), origin as (
          select null::bigint as id, a.name as agent, ${roomId}::text as room_id, array[a.user_id]::text[] as requesters,
            c.sources || ${roomId}::text as sources, case when c.tainted then array[${`${share}:${path}`}]::text[] else '{}' end as taint, c.place
          from compacted c, agents a where a.name = ${agent}
        ), ${rememberSteps(sql, [memory], "origin")}
        select exists (select 1 from compacted) as "isDone"`,
    );
    return row?.isDone ?? false;
  }
}
