import type { Database } from "../../adapters/database/connection.ts";
import type { EventId } from "../../base/lib/ids.ts";
import { type Forgettable, mayHave, nextOf, saidHere, type ToForget } from "./forgetting.ts";
import { statePaths } from "./state-names.ts";
import type { WrittenFile } from "./written-files.ts";

/** A message that brought text files. */
interface Brought extends Forgettable {
  readonly eventId: EventId;
  readonly texts: readonly string[];
}

/** Files that are read at once: they may be long. */
export const broughtAtOnce = 10;

/** Finds messages in a room that brought text files with the words, the newest first. */
export const findBroughtToForget = (
  database: Database,
  what: ToForget,
  below: number | undefined,
): Promise<Brought[]> =>
  database.run(
    (sql) => sql<Brought[]>`
      select e.seq as id, e.event_id as "eventId", f.texts
      from events e cross join lateral (
        select jsonb_agg(text) as texts from (
          select text_content as text from files where event_id = e.event_id and text_content is not null
          union
          select text_content from file_versions where event_id = e.event_id and text_content is not null) brought) f
      where ${saidHere(sql, what)} and e.media is not null
        ${nextOf(sql, what, { below, id: sql`e.seq`, text: sql`f.texts::text`, most: broughtAtOnce })}`,
  );

/** A text file in which words may be. */
export interface FileToForget extends WrittenFile {
  /** True if an agent has written it, or adds lines to it; otherwise people have. */
  readonly isAgents: boolean;
}

/**
 * Finds text files that may have the words: those that agents have made of a room, also as they were, and those that people
 * have written there, as far as everybody there may read them.
 */
export const findFilesToForget = (database: Database, { roomId, words }: ToForget): Promise<FileToForget[]> =>
  database.run(
    (sql) => sql<FileToForget[]>`
      with kept as materialized (
        select share, path, version, true as "isCurrent", text_content, owner, root, sources from files
        where event_id is null and text_content is not null and ((share = 'rooms' and root = ${roomId}) or ${roomId} = any (sources))
        union all
        select share, path, version, false, text_content, owner, root, sources from file_versions
        where event_id is null and text_content is not null and ((share = 'rooms' and root = ${roomId}) or ${roomId} = any (sources))
      ), told as materialized (
        select *, owner in (select user_id from agents) or case share
          when 'rooms' then path ~ ${`^/[^/]+/agents/[^/]+${statePaths}`}
          when 'agents' then path ~ ${`^/[^/]+${statePaths}`} else false end as "isAgents"
        from kept
      ), meant as materialized (
        select * from told
        where ("isAgents" or (share = 'rooms' and root = ${roomId} and "isCurrent")) and ${mayHave(sql, sql`text_content`, words)}
      ), early as (
        select too_early(audience_of(${roomId}, ''), 'rooms', (select array_agg(path) from meant where not "isAgents")) as path
      )
      select share, path, version, "isCurrent", null as "writeKey", false as "isSaid", "isAgents" from meant
      where "isAgents" or path not in (select path from early)
      order by share, path, version`,
  );

/** The text of a version; undefined where it is no more. */
export async function textOfVersion(
  database: Database,
  { isCurrent, path, share, version }: WrittenFile,
): Promise<string | undefined> {
  const [row] = await database.run(
    (sql) => sql<{ text: string }[]>`
      select text_content as text from ${sql(isCurrent ? "files" : "file_versions")}
      where share = ${share} and path = ${path} and version = ${version}`,
  );
  return row?.text;
}
