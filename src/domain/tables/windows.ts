import type { Database, Fragment, Json, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { WindowQuery, WindowState } from "../../base/prompt/types.ts";
import type { FilePlace } from "./files.ts";
import { keepAddresses } from "./web-addresses.ts";

/** Agent, owner and conversation to which a desk belongs. */
export interface Seat {
  readonly agent: AgentName;
  readonly userId: UserId;
  readonly owner: UserId;
  /** The conversation's room, '' at home. */
  readonly here: RoomId;
  /** The agent's scratchpad, where it has one: read where everybody may read its home. */
  readonly scratchpad?: FilePlace | undefined;
}

/** An answer about a content, with the version of the content that it is about. */
export interface StoredQuery extends WindowQuery {
  readonly version: number;
}

export interface WindowRow {
  readonly id: number;
  /** The conversation's room. */
  readonly roomId: RoomId;
  readonly windowId: string;
  /** `page`: a page of the web; `web`: results of a search in it. */
  readonly srcType: "file" | "search" | "page" | "web" | "video" | "system";
  readonly src: string;
  readonly arguments: string;
  readonly title: string | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly content: string | null;
  readonly sources: readonly RoomId[];
  /** Untrusted texts in the content, or in what was asked about it. */
  readonly taint: readonly string[];
  readonly state: WindowState;
  readonly isPinned: boolean;
  readonly turnsLeft: number;
  readonly top: number | null;
  readonly height: number;
  readonly queries: readonly StoredQuery[];
  readonly key: string | null;
  /** The agent is where the content comes from, and everybody in the audience may read it now. */
  readonly isOpen: boolean;
}

/** A file on the desk. */
export interface DeskFile extends FilePlace {
  readonly contentType: string;
  readonly version: number;
  readonly size: number;
  readonly isBinary: boolean;
  readonly eventId: EventId | null;
  readonly isTainted: boolean;
  /** See `FileInfo`. */
  readonly sources: readonly RoomId[];
  /** Lines and characters; null where they were not counted. */
  readonly lines: number | null;
  readonly chars: number | null;
  /** All of it, where it is short or was asked for by name. */
  readonly text: string | null;
  /** Of a long text that is shown near its beginning. */
  readonly beginning: string | null;
}

export interface WindowDraft
  extends Pick<
    WindowRow,
    "srcType" | "src" | "arguments" | "contentType" | "content" | "sources" | "taint" | "height" | "turnsLeft"
  > {
  readonly key: string;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  readonly title?: string | undefined;
  /** The line to begin with; without it a window that is open already stays where it is. */
  readonly top?: number | undefined;
}

/** Changes of a window by an operation. */
export type WindowChanges = Pick<
  WindowRow,
  | "state"
  | "isPinned"
  | "turnsLeft"
  | "top"
  | "height"
  | "queries"
  | "content"
  | "sources"
  | "taint"
  | "attributes"
  | "title"
>;

/** Windows that one conversation can have open; of more, those used longest ago are closed. */
export const windowsMax = 20;
/** Bytes of a file, or characters of the beginning of one, that are read with every step, without being asked for. */
const shortFile = 65_536;
/** Of a window that begins further down, the beginning of the text is of no use. */
const topOfBeginning = 1_000;

const windowColumns = `w.id, w.room_id as "roomId", w.window_id as "windowId", w.src_type as "srcType", w.src, w.arguments,
  case when not w.unseen then w.title end as title, w.attributes,
  w.content_type as "contentType", w.content, w.sources, w.taint, w.state, w.pinned as "isPinned", w.turns_left as "turnsLeft", w.top, w.height,
  w.queries, w.key`;

/** Files that are read beside those in windows: these, and all that is below the folders. */
export interface Reading {
  readonly files?: readonly FilePlace[];
  readonly folders?: readonly FilePlace[];
}

/** Rows of the desk of a conversation: the window used last at the end, and the files. */
export interface DeskRows {
  readonly windows: readonly WindowRow[];
  readonly files: readonly DeskFile[];
  /** Everybody here may read the agent's home, and its scratchpad. */
  readonly isHomeOpen: boolean;
}

/** A window, a file, or a window with its file. */
export type DeskItem = Partial<WindowRow> & {
  readonly file: Omit<DeskFile, "text" | "beginning"> | null;
  readonly text: string | null;
  readonly beginning: string | null;
  readonly isHomeOpen: boolean;
};

/**
 * A query that gives the items on the desk of a conversation.
 * @param audience those who see it, where the statement knows them already
 */
export const deskItems = (
  sql: Sql,
  { agent, userId, owner, here, scratchpad }: Seat,
  reading: Reading,
  audience: Fragment = sql`audience_of(${here}, ${owner})`,
) => {
  const { files = [], folders = [] } = reading;
  const [padShare, pad] = [scratchpad?.share ?? null, scratchpad?.path ?? null];
  const always = scratchpad ? [...files, scratchpad] : files;
  return sql`
  with present as materialized (
    select ${audience} as audience
  ), walled as materialized (
    select may_read(audience, '', ${owner})
      and scratchpad_owners(${scratchpad ? `${padShare}:${pad}` : null}) <@ array[${owner}]::text[] as home_open
    from present
  ), named as (
    select n.* from present, walled, unnest(${always.map(({ share }) => share)}::text[], ${always.map(({ path }) => path)}::text[]) as n(share, path)
    where (share <> 'agents' or not exists (select 1 from agents a where a.name = split_part(n.path, '/', 2) and a.name <> ${agent}))
      and case when (share, path) is not distinct from (${padShare}::text, ${pad}::text) then home_open and not came_too_early(audience, share, n.path)
        else share <> 'agents' or cardinality(scratchpad_owners('agents:' || path)) = 0 end
    union
    select files.share, files.path
    from unnest(${folders.map(({ share }) => share)}::text[], ${folders.map(({ path }) => path)}::text[]) as d(share, path)
      join files on files.share = d.share and files.path collate "C" > d.path || '/' and files.path collate "C" < d.path || '0'
  ), w as (
    select *, case when src_type = 'file' then split_part(src, ':', 1) end as share,
      case when src_type = 'file' then substr(src, strpos(src, ':') + 1) end as path,
      (select coalesce(bool_and(s = ${here} or (may_read(audience, s, ${owner}) and is_at(${userId}, ${owner}, s))), true)
        from unnest(sources) s)
        and not (src_type = 'file' and src not like 'system:%' and came_too_early(audience, split_part(src, ':', 1), substr(src, strpos(src, ':') + 1)))
        and (not unseen or (src_type = 'file' and (src like 'system:%' or exists (
          select 1 from files where share = split_part(src, ':', 1) and files.path = substr(src, strpos(src, ':') + 1)))))
        and (home_open or src not in ('scratchpad', ${`${padShare}:${pad}`})) as open
    from windows cross join present cross join walled cross join lateral (
      select exists (select 1 from unnest(sources || room_id) s where is_unseen(audience, s, windows.place)) as unseen) early
    where agent = ${agent} and room_id = ${here}
  ), f as (
    select files.*, size <= ${shortFile} or exists (select 1 from named n where n.share = files.share and n.path = files.path) as is_whole
    from files join (select share, path from named union select share, path from w where open) k
      on files.share = k.share and files.path = k.path
  )
  select ${sql.unsafe(windowColumns)}, w.open as "isOpen",
    case when f.id is not null then jsonb_build_object('share', f.share, 'path', f.path, 'contentType', f.content_type,
      'version', f.version, 'size', f.size, 'isBinary', f.binary_content is not null, 'eventId', f.event_id, 'isTainted', f.tainted, 'sources', f.sources,
      'lines', f.line_count, 'chars', f.char_count) end as file,
    case when f.is_whole then f.text_content end as text,
    case when not f.is_whole and coalesce(w.top, 1) <= ${topOfBeginning} then left(f.text_content, ${shortFile}) end as beginning,
    (select home_open from walled) as "isHomeOpen"
  from w full join f on f.share = w.share and f.path = w.path
  order by w.used_at, w.id, f.share desc, f.path`;
};

export const deskOf = (items: readonly DeskItem[]): DeskRows => ({
  windows: items.flatMap(({ file: _, text: __, beginning: ___, isHomeOpen: ____, ...row }) =>
    row.id ? [row as WindowRow] : [],
  ),
  files: items.flatMap(({ file, text, beginning }) => (file ? [{ ...file, text, beginning }] : [])),
  isHomeOpen: items[0]?.isHomeOpen ?? false,
});

export class Windows {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Reads the desk of a conversation as it is now. */
  async desk(seat: Seat, reading: Reading = {}): Promise<DeskRows> {
    return deskOf(await this.#database.run((sql) => sql<DeskItem[]>`${deskItems(sql, seat, reading)}`));
  }

  /** Opens a window; one that is open on the same is given what is new, and stays where it is. Returns its id. */
  async open({ agent, here }: Seat, draft: WindowDraft): Promise<string> {
    const { srcType, src, arguments: args } = draft;
    const [row] = await this.#database.run(
      (sql) => sql<{ windowId: string }[]>`
        with crowded as (
          delete from windows where not pinned and id in (
            select id from windows
            where agent = ${agent} and room_id = ${here} and src_type <> 'system' and (src_type, src, arguments) <> (${srcType}, ${src}, ${args})
            order by pinned desc, used_at desc offset ${windowsMax - 1})
        )
        insert into windows (agent, room_id, src_type, src, arguments, title, attributes, content_type, content, sources, taint, turns_left, top, height, key)
        values (${agent}, ${here}, ${srcType}, ${src}, ${args}, ${draft.title ?? null}, ${sql.json({ ...draft.attributes })}, ${draft.contentType},
          ${draft.content}, ${[...draft.sources]}, ${[...draft.taint]}, ${draft.turnsLeft}, ${draft.top ?? null}, ${draft.height}, ${draft.key})
        on conflict (agent, room_id, src_type, digest) do update set
          title = coalesce(excluded.title, windows.title), attributes = excluded.attributes, content_type = excluded.content_type,
          content = excluded.content, sources = excluded.sources, taint = excluded.taint, place = excluded.place, turns_left = excluded.turns_left,
          top = coalesce(excluded.top, windows.top), key = excluded.key, used_at = excluded.used_at,
          state = case when windows.state = 'minimized' then 'normal' else windows.state end
        returning window_id as "windowId"`,
    );
    if (!row) throw new Error("a window was not opened");
    return row.windowId;
  }

  /** Keeps that addresses stood in something that was read. May be repeated. */
  async keepAddresses({ agent, here }: Seat, addresses: readonly string[]): Promise<void> {
    await this.#database.run((sql) => keepAddresses(sql, { agent, roomId: here }, addresses));
  }

  /** Writes what the operation `key` made of a window; once, however often it is tried. */
  async change({ agent, here }: Seat, id: number, changes: WindowChanges, key: string): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update windows set place = case when content is distinct from ${changes.content} then place_now() else place end,
          state = ${changes.state}, pinned = ${changes.isPinned}, turns_left = ${changes.turnsLeft}, top = ${changes.top},
          height = ${changes.height}, queries = ${sql.json(changes.queries as unknown as Json)}, content = ${changes.content},
          title = case when ${changes.title}::text is null then title else ${changes.title} end, attributes = ${sql.json({ ...changes.attributes })},
          sources = ${[...changes.sources]}, taint = ${[...changes.taint]}, key = ${key}, used_at = clock_timestamp()
        where agent = ${agent} and room_id = ${here} and id = ${id} and key is distinct from ${key}`,
    );
  }

  /** Changes a window that is always there. */
  async changeSystem(
    { agent, here }: Seat,
    windowId: string,
    changes: Omit<WindowChanges, "isPinned" | "content" | "attributes" | "title">,
    key: string,
  ): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        insert into windows (agent, room_id, src_type, src, sources, taint, state, turns_left, top, height, queries, key)
        values (${agent}, ${here}, 'system', ${windowId}, ${[...changes.sources]}, ${[...changes.taint]}, ${changes.state}, ${changes.turnsLeft}, ${changes.top},
          ${changes.height}, ${sql.json(changes.queries as unknown as Json)}, ${key})
        on conflict (agent, room_id, src_type, digest) do update set sources = excluded.sources, taint = excluded.taint, state = excluded.state, top = excluded.top,
          height = excluded.height, queries = excluded.queries, key = excluded.key, used_at = excluded.used_at
        where windows.key is distinct from ${key}`,
    );
  }

  async close({ agent, here }: Seat, id: number): Promise<void> {
    await this.#database.run(
      (sql) => sql`delete from windows where agent = ${agent} and room_id = ${here} and id = ${id}`,
    );
  }
}

/**
 * Two CTEs for the statement that ends a turn: what was done to windows that are always there is over, the others are
 * a turn nearer to their end, and shown maximized no more, unless they are pinned.
 * @param ended the CTE that gives the turn's row, with agent and room_id, if and only if it ends now
 */
export const endWindows = (sql: Sql, ended: string) => sql`
  windows_closed as (
    delete from windows w using ${sql(ended)} t
    where w.agent = t.agent and w.room_id = t.room_id and (w.src_type = 'system' or (not w.pinned and w.turns_left <= 1))
  ), windows_kept as (
    update windows w set turns_left = w.turns_left - 1, state = case when w.state = 'maximized' then 'normal' else w.state end
    from ${sql(ended)} t
    where w.agent = t.agent and w.room_id = t.room_id and w.src_type <> 'system' and not w.pinned and w.turns_left > 1
  )`;
