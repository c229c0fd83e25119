import type { Database } from "../../adapters/database/connection.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import { lineCount } from "../../base/lib/lines.ts";
import { type Addition, appendLines, foldersAbove, newLines, putAside } from "./append.ts";

export interface FilePlace {
  readonly share: string;
  readonly path: string;
}

/** Data of a file without its content. */
export interface FileInfo extends FilePlace {
  readonly contentType: string;
  readonly owner: string;
  /** Rises with every change, also over a deletion. */
  readonly version: number;
  /** Bytes; text counts as UTF-8. */
  readonly size: number;
  /** The event that the content came with. */
  readonly eventId: EventId | null;
  /** Names the write that made this version. */
  readonly writeKey: string | null;
  /** Somebody untrusted wrote it, or an agent that had read what such people wrote. */
  readonly isTainted: boolean;
  /** As `may_read` names them, beside the one whose file it is; of a home, its owner. */
  readonly sources: readonly RoomId[];
  /** Place in history at which it was written; nothing for what comes with the program. */
  readonly place?: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly hidden?: number; // Things in a folder whose names cannot be shown.
}

/** Of text and binary one is null; of folders both are. */
export interface FileRow extends FileInfo {
  readonly text: string | null;
  readonly binary: Uint8Array | null;
}

/** A version that was overwritten or deleted. */
export interface OldVersion {
  readonly version: number;
  readonly size: number;
  readonly writtenAt: Date;
  readonly endedAt: Date;
}

export interface FileWrite extends FilePlace {
  readonly contentType: string;
  readonly text: string | null;
  readonly binary?: Uint8Array | null;
  /** Maker of the file. An existing file keeps its owner. */
  readonly owner: string;
  readonly eventId?: EventId | null | undefined;
  readonly isTainted?: boolean | undefined;
  readonly sources?: readonly RoomId[] | undefined;
  /** True if what is replaced stays as a file of its own; see `putAside`. */
  readonly isPutAside?: boolean | undefined;
  /** Place in history from which the content is; without it, it is made now. */
  readonly place?: number | undefined;
  /** The version that must be there, 0 for none. Without it whatever is there is replaced. */
  readonly expected?: number | undefined;
  /** Equal for one write, however often it is tried: it is carried out once. */
  readonly key?: string;
  /** Bytes that one file, and all files of a root together, may have. */
  readonly limits?: { readonly file: number; readonly root: number };
}

export type WriteOutcome =
  | { readonly state: "written"; readonly version: number; readonly size: number }
  /** Another version is there than expected: 0 for none. */
  | { readonly state: "stale"; readonly version: number }
  /** A folder stands there, or a file where one of its folders should be. */
  | { readonly state: "blocked" }
  /** The event that the content came with was redacted meanwhile. */
  | { readonly state: "redacted" }
  | { readonly state: "large" }
  | { readonly state: "full" };

export const folderType = "inode/directory";

const infoColumns = `share, path, content_type as "contentType", owner, version, size, event_id as "eventId",
  write_key as "writeKey", tainted as "isTainted", sources, place, created_at as "createdAt", updated_at as "updatedAt"`;
const columns = `${infoColumns}, text_content as text, binary_content as binary`;
const kept =
  "share, path, version, content_type, text_content, binary_content, owner, event_id, write_key, tainted, sources, place";

/** Files and what they were: rights are not looked at here. */
export class Files {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the named files; those that are not there are left out. */
  read(files: readonly FilePlace[]): Promise<FileRow[]> {
    return this.#database.run(
      (sql) => sql<FileRow[]>`
        select ${sql.unsafe(columns)} from files
        where (share, path) in (select * from unnest(${files.map((file) => file.share)}::text[], ${files.map((file) => file.path)}::text[]))`,
    );
  }

  /**
   * Lists files and folders at `base` and below it, in the order of the paths' characters.
   * @param roots only what is of these; null: all
   */
  list(share: string, base: string, roots: readonly string[] | null, limit: number): Promise<FileInfo[]> {
    const folder = base === "/" ? "/" : `${base}/`;
    const end = `${folder.slice(0, -1)}0`;
    // The range is what the index can find; `a-b` is in it for `a`, too.
    return this.#database.run(
      (sql) => sql<FileInfo[]>`
        select ${sql.unsafe(infoColumns)} from files
        where share = ${share} and (${roots && [...roots]}::text[] is null or root = any (${roots && [...roots]}::text[]))
          and path collate "C" >= ${base} and path collate "C" < ${end} and (path = ${base} or path collate "C" >= ${folder})
        order by path collate "C" limit ${limit}`,
    );
  }

  /** Old versions of a file, newest first. */
  versions({ share, path }: FilePlace): Promise<OldVersion[]> {
    return this.#database.run(
      (sql) => sql<OldVersion[]>`
        select version, size, written_at as "writtenAt", ended_at as "endedAt" from file_versions
        where share = ${share} and path = ${path} order by version desc`,
    );
  }

  /** An old version with its content. */
  async version({ share, path }: FilePlace, version: number): Promise<FileRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<FileRow[]>`
        select share, path, content_type as "contentType", owner, version, size, event_id as "eventId",
          write_key as "writeKey", tainted as "isTainted", sources, place, written_at as "createdAt", ended_at as "updatedAt", text_content as text, binary_content as binary
        from file_versions where share = ${share} and path = ${path} and version = ${version}`,
    );
    return row;
  }

  /** Writes a file that is not there yet; one that is stays as it is. */
  async seed(file: Pick<FileWrite, "share" | "path" | "contentType" | "text" | "owner">): Promise<void> {
    await this.write({ ...file, expected: 0 });
  }

  /** Makes or replaces a file; what was there is kept as a version. */
  async write(file: FileWrite): Promise<WriteOutcome> {
    for (;;) {
      const outcome = await this.#tryWrite(file);
      // Nothing when somebody else made the file at the same moment: now it is there.
      if (outcome) return outcome;
    }
  }

  async #tryWrite(file: FileWrite): Promise<WriteOutcome | undefined> {
    const {
      share,
      path,
      text,
      binary = null,
      key = null,
      expected = null,
      eventId = null,
      isTainted = false,
      sources = [],
      isPutAside = false,
      place = null,
      limits,
    } = file;
    const [lines, chars] = text === null ? [null, null] : [lineCount(text), text.length];
    const [row] = await this.#database.run(
      (sql) => sql<WriteRow[]>`
        with present as materialized (
          select * from files where share = ${share} and path = ${path} for update
        ), content as (
          select ${text}::text as text, ${binary}::bytea as bytes
        ), state as (
          select coalesce((select version from present), 0) as version,
            coalesce(octet_length(text), octet_length(bytes), 0) as size,
            (select coalesce(sum(size), 0) from files where share = ${share} and root = split_part(${path}, '/', 2) and path <> ${path}) as used,
            (select version from present where write_key = ${key}
              union all select version from file_versions where share = ${share} and path = ${path} and write_key = ${key}) as done,
            exists (select 1 from present where content_type = ${folderType}) or exists (
              select 1 from files where share = ${share} and path = any (${foldersAbove(path)}::text[]) and content_type <> ${folderType}) or exists (
              select 1 from files where share = ${share} and path collate "C" >= ${`${path}/`} and path collate "C" < ${`${path}0`}) as "isBlocked",
            exists (select 1 from events where event_id = ${eventId} and redacted_at is not null) as "isRedacted"
          from content
        ), passed as (
          select 1 from state
          where done is null and not "isBlocked" and not "isRedacted" and version = coalesce(${expected}::int, version)
            and size <= coalesce(${limits?.file ?? null}::bigint, size) and used + size <= coalesce(${limits?.root ?? null}::bigint, used + size)
        ), kept as (
          insert into file_versions (${sql.unsafe(kept)}, written_at, ended_key)
          select ${sql.unsafe(kept)}, updated_at, ${key} from present, passed
        ),${isPutAside ? sql`${putAside(sql, path, "present", "passed")},` : sql``} replaced as (
          update files f set content_type = ${file.contentType}, text_content = c.text, binary_content = c.bytes, line_count = ${lines}, char_count = ${chars},
            event_id = ${eventId}, write_key = ${key}, tainted = ${isTainted}, sources = ${[...sources]}, place = coalesce(${place}::float8, place_now()), version = f.version + 1, updated_at = now()
          from present p, passed, content c where f.id = p.id returning f.version
        ), made as (
          insert into files (share, path, content_type, text_content, binary_content, owner, event_id, write_key, tainted, sources, place, line_count, char_count, version)
          select ${share}, ${path}, ${file.contentType}, text, bytes, ${file.owner}, ${eventId}, ${key}, ${isTainted}, ${[...sources]}::text[], coalesce(${place}::float8, place_now()), ${lines}, ${chars},
            1 + coalesce((select max(version) from file_versions where share = ${share} and path = ${path}), 0)
          from content, passed where not exists (select 1 from present)
          on conflict (share, path) do nothing returning version
        )
        select coalesce(done, (select version from replaced union all select version from made)) as written, state.* from state`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    if (row.written !== null) return { state: "written", version: row.written, size: row.size };
    if (row.isBlocked) return { state: "blocked" };
    if (row.isRedacted) return { state: "redacted" };
    if (expected !== null && row.version !== expected) return { state: "stale", version: row.version };
    if (limits && row.size > limits.file) return { state: "large" };
    if (limits && row.used + row.size > limits.root) return { state: "full" };
    return undefined;
  }

  /** Puts lines at the end of a file: whoever else writes at the same moment, none are lost. */
  async append(addition: Addition): Promise<WriteOutcome> {
    const [row] = await this.#database.run(
      (sql) => sql<{ isFresh: boolean; version: number | null; size: number | null }[]>`
        with ${newLines(sql, addition)}, ${appendLines(sql, addition, "lines")}
        select exists (select 1 from noted) as "isFresh", version, size from (select 1) always left join (
          select version, size from appended union all
          select version, size from target where not exists (select 1 from noted)) a on true`,
    );
    if (!row) throw new Error("a query without a table gave no row");
    const { isFresh, version, size } = row;
    if (isFresh && version === null) return { state: "blocked" };
    return { state: "written", version: version ?? 0, size: size ?? 0 };
  }

  /**
   * Removes files of one share, once for a key; each is kept as a version. Returns those that were there, also when it is
   * tried again.
   */
  async remove(share: string, paths: readonly string[], key: string): Promise<string[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ path: string }[]>`
        with known as (
          select things from done where key = ${key}
        ), gone as (
          delete from files where share = ${share} and path = any (${[...paths]}::text[]) and not exists (select 1 from known)
          returning *
        ), remembered as (
          insert into file_versions (${sql.unsafe(kept)}, written_at, ended_key)
          select ${sql.unsafe(kept)}, updated_at, ${key} from gone where content_type <> ${folderType}
        ), recorded as (
          insert into done (key, things) select ${key}, array_agg(path order by path) from gone having count(*) > 0
          on conflict do nothing
        )
        select unnest(things) as path from known union all select path from gone`,
    );
    return rows.length > 0 ? rows.map((row) => row.path) : this.donePaths(key);
  }

  /** Paths that were recorded under a key; none where nothing was. */
  async donePaths(key: string): Promise<string[]> {
    const [row] = await this.#database.run(
      (sql) => sql<{ things: string[] }[]>`select things from done where key = ${key}`,
    );
    return row?.things ?? [];
  }

  /** Records what is to be done, unless something is recorded under the key already. Returns what is. */
  async plan(key: string, things: readonly string[]): Promise<string[]> {
    await this.#database.run(
      (sql) => sql`insert into done (key, things) values (${key}, ${[...things]}::text[]) on conflict do nothing`,
    );
    return this.donePaths(key);
  }

  /**
   * Forgets old versions, and what was done, after 7 days; the oldest versions of a root sooner where they take more than
   * `bytes`.
   */
  async forgetOld(bytes: number): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with forgotten as (delete from done where done_at < now() - interval '7 days')
        delete from file_versions v using (
          select share, path, version, ended_at,
            sum(size) over (partition by share, root order by ended_at desc, path, version desc) as newer
          from file_versions
        ) old
        where v.share = old.share and v.path = old.path and v.version = old.version
          and (old.ended_at < now() - interval '7 days' or old.newer > ${bytes})`,
    );
  }
}

interface WriteRow {
  readonly written: number | null;
  readonly version: number;
  readonly size: number;
  readonly used: number;
  readonly isBlocked: boolean;
  readonly isRedacted: boolean;
}
