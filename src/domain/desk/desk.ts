import { LRUCache } from "lru-cache";
import type { Database } from "../../adapters/database/connection.ts";
import { type EventId, HOME, type RoomId } from "../../base/lib/ids.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import type { FileView, WindowChange, WindowView } from "../../base/prompt/types.ts";
import {
  type Content,
  type Excerpt,
  elementContent,
  partialContent,
  textContent,
  type Viewport,
  type WholeContent,
} from "../../base/prompt/viewport.ts";
import { type Agent, personaPath } from "../agents/agent.ts";
import { textTypeOf } from "../files/content.ts";
import { type FilePath, formatPath, parsePath, type ShareName } from "../files/path.ts";
import type { Store } from "../files/store.ts";
import { Past } from "../tables/scrollback.ts";
import { type DeskFile, type DeskRows, type Reading, type Seat, type WindowRow, Windows } from "../tables/windows.ts";

/** Everything on the desk of a conversation now. */
export interface Desk {
  readonly windows: readonly WindowView[];
  /** Changes to windows that are always there, by their ids. */
  readonly changes: ReadonlyMap<string, WindowChange>;
  readonly persona: FileView | undefined;
  readonly scratchpad: FileView | undefined;
  /** Rooms and users whose content is shown. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts in it: user ids, and paths of files. */
  readonly taint: readonly string[];
}

/** Source of a window's content, as far as its row tells it. */
export interface Material {
  readonly content: Content;
  /** Rises with every change of the source. */
  readonly version: number;
  readonly contentType: string;
  /** The event that the content came with: its redaction concerns what was shown, too. */
  readonly eventId?: EventId | null | undefined;
  readonly tainted?: boolean | undefined;
  /** Why there is nothing to be seen. */
  readonly problem?: string | undefined;
}

export interface WholeMaterial extends Material {
  readonly content: WholeContent;
}

const empty = textContent("");
/** Characters of large files that stay prepared; a content never changes under its key. */
const contentCharsKept = 16_000_000;

export const seatOf = (agent: Agent, roomId: RoomId): Seat => ({
  agent: agent.name,
  userId: agent.userId,
  owner: agent.owner,
  here: roomId,
  scratchpad: scratchpadOf(agent),
});

/** Reads the desks of conversations. */
export class Desks {
  readonly #windows: Windows;
  readonly #stores: Readonly<Partial<Record<ShareName, Store>>>;
  readonly #past: Past;
  readonly #contents = new LRUCache<string, WholeContent>({ maxSize: contentCharsKept });

  constructor(database: Database, stores: Readonly<Partial<Record<ShareName, Store>>>) {
    this.#windows = new Windows(database);
    this.#past = new Past(database);
    this.#stores = stores;
  }

  get table(): Windows {
    return this.#windows;
  }

  get past(): Past {
    return this.#past;
  }

  /** Files that are read with a desk, beside those in windows and the scratchpad. */
  readingFor(agent: Agent): Pick<Reading, "files"> {
    return { files: [parsePath(personaPath(agent))] };
  }

  /** Everything on the desk as it is now, in one statement. */
  async of(agent: Agent, roomId: RoomId): Promise<Desk> {
    return this.lay(agent, await this.#windows.desk(seatOf(agent, roomId), this.readingFor(agent)));
  }

  /** Reads a desk from its rows; one statement more for a large file that is seen for the first time. */
  async lay(agent: Agent, { windows, files, homeOpen }: DeskRows): Promise<Desk> {
    const [persona, pad] = [parsePath(personaPath(agent)), scratchpadOf(agent)];
    const changes = new Map(
      windows.flatMap((row) => (row.srcType === "system" && row.open ? [[row.windowId, changeOf(row)] as const] : [])),
    );
    const fileView = (path: FilePath | undefined, windowId: string): FileView | undefined => {
      const file = path && files.find((one) => one.share === path.share && one.path === path.path);
      if (!file) return undefined;
      return {
        path: formatPath(file),
        contentType: file.contentType,
        text: file.text ?? "",
        tainted: file.tainted,
        window: changes.get(windowId),
      };
    };
    const shown = windows.filter(({ open, state }) => open && state !== "minimized");
    const always = [persona, ...(pad ? [pad] : [])].map(formatPath);
    const isShown = (path: string): boolean =>
      always.includes(path) || shown.some(({ src }) => src === path) || !windows.some(({ src }) => src === path);
    const opened = windows.filter((row) => row.srcType !== "system");
    const scratchpad = fileView(pad, "scratchpad");
    return {
      windows: await Promise.all(opened.map(async (row) => viewOf(agent, row, await this.material(agent, row, files)))),
      changes,
      persona: fileView(persona, "persona"),
      // Also where nobody has written it yet: the agent is to know where it is.
      scratchpad: scratchpad ?? (homeOpen ? emptyFile(pad, changes.get("scratchpad")) : undefined),
      sources: [...shown.flatMap(({ sources }) => sources), ...(scratchpad ? [HOME] : [])],
      taint: [
        ...shown.flatMap(({ taint }) => taint),
        ...files.filter((file) => file.tainted && isShown(formatPath(file))).map(formatPath),
      ],
    };
  }

  /** Content that a window shows as it stands, and as much around it as is at hand. */
  async material(agent: Agent, row: WindowRow, files: readonly DeskFile[]): Promise<Material> {
    const file = row.open && row.srcType === "file" ? files.find((one) => formatPath(one) === row.src) : undefined;
    if (file && file.beginning !== null && file.lines !== null && file.chars !== null) {
      const whole = { lines: file.lines, chars: file.chars };
      const content =
        this.#contents.get(keyOf(file)) ??
        partialContent(file.beginning, whole, viewportOf(row, whole.lines), agent.settings.windowChars);
      if (content) return { ...file, content };
    }
    return this.whole(row, files);
  }

  /** All that is in an open window: of a file, as it is now. */
  async whole(row: WindowRow, files: readonly DeskFile[]): Promise<WholeMaterial> {
    if (!row.open) return { content: empty, version: 0, contentType: row.contentType };
    if (row.srcType !== "file") {
      const shown = row.contentType === "text/lmml" ? fromStored(row.content ?? "<content />").children : row.content;
      const content = typeof shown === "object" && shown !== null ? elementContent(shown) : textContent(shown ?? "");
      return { content, version: 0, contentType: row.contentType };
    }
    const known = files.find((file) => formatPath(file) === row.src);
    if (known?.binary) return { content: empty, ...known, problem: "what is in the file is no text" };
    if (known) return { ...known, content: await this.#contentOf(known) };
    const { share, path } = parsePath(row.src);
    const [stored] =
      share === "system" || share === "sandbox" ? ((await this.#stores[share]?.read([{ share, path }])) ?? []) : [];
    if (!stored)
      return { content: empty, version: 0, contentType: row.contentType, problem: "the file is not there any more" };
    return { ...stored, content: textContent(stored.text ?? "") };
  }

  async #contentOf(file: DeskFile): Promise<WholeContent> {
    if (file.text !== null) return textContent(file.text);
    const known = this.#contents.get(keyOf(file));
    if (known) return known;
    const [read] = (await this.#stores[file.share as ShareName]?.read([file])) ?? [];
    if (!read) return empty;
    const content = textContent(read.text ?? "");
    this.#contents.set(keyOf(read), content, { size: content.chars + 1 });
    return content;
  }
}

const scratchpadOf = ({ settings }: Agent): FilePath | undefined =>
  settings.scratchPadFile === null ? undefined : parsePath(settings.scratchPadFile);

const emptyFile = (file: FilePath | undefined, window: WindowChange | undefined): FileView | undefined =>
  file && { path: formatPath(file), contentType: textTypeOf(file.path), text: "", window };

const keyOf = ({ share, path, version }: { share: string; path: string; version: number }): string =>
  `${share}:${path}@${version}`;

const changeOf = ({ state, queries, top, height }: WindowRow): WindowChange => ({
  state,
  queries,
  top: top ?? undefined,
  height: height === 0 ? undefined : height,
});

type Pose = Pick<WindowRow, "state" | "top" | "height">;

const viewportOf = (row: Pose, lines: number): Viewport => {
  const top = Math.min(row.top ?? 1, Math.max(1, lines));
  return { top, height: row.state === "maximized" ? lines - top + 1 : row.height };
};

/** Cuts out of a content what is seen through a window that stands as the row says. */
export const excerptOf = (row: Pose, content: Content, charsMax: number): Excerpt =>
  content.excerpt(viewportOf(row, content.lines), charsMax);

/** Files of agents and of the program may hold markup; what people and the web write is escaped. */
const isOurs = (row: WindowRow): boolean => row.srcType === "file" && /^(?:agents|system):/.test(row.src);

export const viewOf = (
  agent: Agent,
  row: WindowRow,
  { content, version, contentType, eventId, tainted, problem }: Material,
): WindowView => {
  const { shown, top, truncated } = excerptOf(row, content, agent.settings.windowChars);
  const live = row.srcType === "file";
  return {
    windowId: row.windowId,
    srcType: row.srcType === "system" ? "chatHistory" : row.srcType,
    src: row.open ? row.src : "",
    contentType,
    closed: !row.open,
    lines: content.lines,
    chars: content.chars,
    shown,
    top,
    truncated,
    raw: isOurs(row),
    state: row.state,
    pinned: row.pinned,
    system: false,
    tainted: tainted === true || row.taint.length > 0,
    closesIn: row.pinned ? undefined : row.turnsLeft,
    autorefresh: live,
    refreshable: !live,
    title: row.open ? (row.title ?? undefined) : undefined,
    attributes: row.open
      ? { ...row.attributes, ...(eventId && { eventId }), ...(problem !== undefined && { problem }) }
      : {},
    queries: row.open ? row.queries.filter((query) => query.version === version) : [],
  };
};
