import type { Sql } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** Text for the end of a file. */
export interface Addition {
  readonly share: string;
  readonly path: string;
  /** Maker of the file, where there is none yet. */
  readonly owner: string;
  /** Whole lines. */
  readonly text: string;
  readonly isTainted: boolean;
  /** See `FileInfo`. */
  readonly sources: readonly RoomId[];
  /** Conversation whose working file it is, as the audience of its room and of its agent's owner. */
  readonly roomId: RoomId;
  readonly agentOwner: UserId;
  /** Equal for one addition, however often it is tried: it is made once. */
  readonly key: string;
}

/** Bytes that a file to which lines are added may have: of more, its older half is cut off, and kept as a version. */
export const appendedBytesMax = 262_144;

/** Folders on the way to a file. */
export const foldersAbove = (path: string): string[] =>
  path.split("/").map((_, index, parts) => parts.slice(0, index).join("/"));

/**
 * CTE `put_aside`: keeps a file beside the one that takes its place, behind the walls that it has: version 7 of `LOG.md` as
 * `LOG.7.md`.
 * @param target table or CTE with the row of the file
 * @param once table or CTE that has a row if it is put aside
 */
export const putAside = (sql: Sql, path: string, target: string, once: string) => {
  const dot = path.lastIndexOf(".");
  return sql`
  put_aside as (
    insert into files (share, path, content_type, text_content, binary_content, owner, event_id, write_key, tainted, sources, place,
      line_count, char_count, created_at, updated_at, version)
    select t.share, free.path, t.content_type, t.text_content, t.binary_content, t.owner, t.event_id, t.write_key, t.tainted, t.sources, t.place,
      t.line_count, t.char_count, t.created_at, t.updated_at,
      1 + coalesce((select max(version) from file_versions v where v.share = t.share and v.path = free.path), 0)
    from ${sql(target)} t cross join lateral (
      select wanted.path from (
        select n, ${path.slice(0, dot)}::text || '.' || t.version || case when n > 0 then '-' || n else '' end || ${path.slice(dot)}::text as path
        from generate_series(0, 99) n) wanted
      where not exists (select 1 from files f where f.share = t.share and f.path = wanted.path)
      order by n limit 1) free
    where exists (select 1 from ${sql(once)})
    on conflict do nothing
    returning path
  )`;
};

/**
 * Part of a statement, after `with` or a comma: puts lines at the end of a file, which is made where it is not there.
 * Its CTE `appended` has the new version and size. Nothing is done where a folder or no text is there, or a file where one
 * of its folders should be. Versions are kept only of what is cut off.
 * A file that not everybody in the conversation may read is put aside, and one with these lines alone stands in its place.
 * @param lines the CTE with the lines: text, owner, tainted, place, sources, audience (those in the conversation), of at most one
 *   row. A file stands at the earliest place of its lines: whoever came later into a room with a closed history may not read it
 */
export const appendLines = (sql: Sql, { share, path }: Pick<Addition, "path" | "share">, lines: string) => sql`
  target as materialized (
    select * from files where share = ${share} and path = ${path} for update
  ), appending as (
    select l.* from ${sql(lines)} l
    where not exists (select 1 from target where text_content is null)
      and not exists (select 1 from files where share = ${share} and path = any (${foldersAbove(path)}::text[])
        and (text_content is not null or binary_content is not null))
      and not exists (select 1 from files where share = ${share} and path collate "C" >= ${`${path}/`} and path collate "C" < ${`${path}0`})
  ), hidden as (
    select 1 from target t, appending a
    where t.text_content <> '' and came_too_early(a.audience, ${share}, ${path})
  ), ${putAside(sql, path, "target", "hidden")}, cut_off as (
    insert into file_versions (share, path, version, content_type, text_content, owner, event_id, write_key, tainted, sources, place, written_at)
    select t.share, t.path, t.version, t.content_type, t.text_content, t.owner, t.event_id, t.write_key, t.tainted, t.sources, t.place, t.updated_at
    from target t, appending a where not exists (select 1 from put_aside) and t.size + octet_length(a.text) > ${appendedBytesMax}
    on conflict do nothing
  ), appended as (
    insert into files as f (share, path, content_type, text_content, owner, tainted, place, sources, version)
    select ${share}, ${path}, 'text/markdown', text, owner, tainted, place, sources,
      1 + coalesce((select max(version) from file_versions where share = ${share} and path = ${path}), 0) from appending
    on conflict (share, path) do update set
      text_content = case when exists (select 1 from put_aside) then '' else case when f.size + octet_length(excluded.text_content) > ${appendedBytesMax} then substr(f.text_content,
          length(f.text_content) / 2 + strpos(substr(f.text_content, length(f.text_content) / 2), E'\\n')) else f.text_content end
        || case when right(f.text_content, 1) in ('', E'\\n') then '' else E'\\n' end end || excluded.text_content,
      tainted = excluded.tainted or (f.tainted and not exists (select 1 from put_aside)),
      sources = case when exists (select 1 from put_aside) then excluded.sources
        else array(select distinct unnest(f.sources || excluded.sources) order by 1) end,
      place = case when exists (select 1 from put_aside) then excluded.place else least(f.place, excluded.place) end,
      line_count = null, char_count = null, version = f.version + 1, updated_at = now()
    returning version, size
  )`;

/** CTE `lines` for `appendLines`: a text, unless it was appended before. */
export const newLines = (sql: Sql, { key, owner, path, isTainted, sources, text, ...seat }: Addition) => sql`
  noted as (
    insert into done (key, things) values (${key}, array[${path}]::text[]) on conflict do nothing returning key
  ), lines as (
    select ${text}::text as text, ${owner}::text as owner, ${isTainted}::boolean as tainted, place_now() as place,
      ${[...sources]}::text[] as sources, audience_of(${seat.roomId}, ${seat.agentOwner}) as audience from noted
  )`;
