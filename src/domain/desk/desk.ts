import { LRUCache } from "lru-cache";
import type { Database } from "../../adapters/database/connection.ts";
import { UserError } from "../../base/lib/errors.ts";
import { type Conversation, type EventId, HOME, type RoomId } from "../../base/lib/ids.ts";
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
import { type FileStores, storeOf } from "../files/file-reader.ts";
import { type FilePath, formatPath, parsePath, type ShareName } from "../files/path.ts";
import { isFrom } from "../files/texts.ts";
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
  readonly isTainted?: boolean | undefined;
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
  readonly #stores: FileStores;
  readonly #past: Past;
  readonly #contents = new LRUCache<string, WholeContent>({ maxSize: contentCharsKept });

  constructor(database: Database, stores: FileStores) {
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
  async lay(agent: Agent, { windows, files, isHomeOpen }: DeskRows): Promise<Desk> {
    const [persona, pad] = [parsePath(personaPath(agent)), scratchpadOf(agent)];
    const changes = new Map(
      windows.flatMap((row) =>
        row.srcType === "system" && row.isOpen ? [[row.windowId, changeOf(row)] as const] : [],
      ),
    );
    const fileView = (path: FilePath | undefined, windowId: string): FileView | undefined => {
      const file = path && files.find((one) => one.share === path.share && one.path === path.path);
      if (!file) return undefined;
      return {
        path: formatPath(file),
        contentType: file.contentType,
        text: file.text ?? "",
        isTainted: file.isTainted,
        window: changes.get(windowId),
      };
    };
    const shown = windows.filter(({ isOpen, state }) => isOpen && state !== "minimized");
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
      scratchpad: scratchpad ?? (isHomeOpen ? emptyFile(pad, changes.get("scratchpad")) : undefined),
      sources: [
        ...shown.flatMap(({ sources }) => sources),
        ...files.filter((file) => isShown(formatPath(file))).flatMap(({ sources }) => sources),
        ...(scratchpad ? [HOME] : []),
      ],
      taint: [
        ...shown.flatMap(({ taint }) => taint),
        ...files.filter((file) => file.isTainted && isShown(formatPath(file))).map(formatPath),
      ],
    };
  }

  /** Content that a window shows as it stands, and as much around it as is at hand. */
  async material(agent: Agent, row: WindowRow, files: readonly DeskFile[]): Promise<Material> {
    const file = row.isOpen && row.srcType === "file" ? files.find((one) => formatPath(one) === row.src) : undefined;
    if (file && file.beginning !== null && file.lines !== null && file.chars !== null) {
      const whole = { lines: file.lines, chars: file.chars };
      const content =
        this.#contents.get(keyOf(file)) ??
        partialContent(file.beginning, whole, viewportOf(row, whole.lines), agent.settings.windowChars);
      if (content) return { ...file, content };
    }
    return this.whole(agent, row, files);
  }

  /** All that is in an open window: of a file, as it is now. */
  async whole(agent: Agent, row: WindowRow, files: readonly DeskFile[]): Promise<WholeMaterial> {
    if (!row.isOpen) return { content: empty, version: 0, contentType: row.contentType };
    if (row.srcType !== "file") {
      const shown = row.contentType === "text/lmml" ? fromStored(row.content ?? "<content />").children : row.content;
      const content = typeof shown === "object" && shown !== null ? elementContent(shown) : textContent(shown ?? "");
      return { content, version: 0, contentType: row.contentType };
    }
    const known = files.find((file) => formatPath(file) === row.src);
    if (known?.isBinary) return { content: empty, ...known, problem: "what is in the file is no text" };
    if (known) return { ...known, content: await this.#contentOf(known) };
    const { share, path } = parsePath(row.src);
    // Some files can be read although nobody has written them.
    const conversation = { agent: agent.name, roomId: row.roomId };
    if (share === "sandbox") return this.#inSandbox(row, conversation);
    const [stored] = (await storeOf(this.#stores, share, conversation)?.read([{ share, path }])) ?? [];
    // One that was written in this moment may have other walls.
    if (!stored || stored.sources.length > 0)
      return { content: empty, version: 0, contentType: row.contentType, problem: "the file is not there any more" };
    return { ...stored, content: textContent(stored.text ?? "") };
  }

  /** A file of the conversation's own sandbox; its walls are those of the window. */
  async #inSandbox(row: WindowRow, conversation: Conversation): Promise<WholeMaterial> {
    const nothing = { content: empty, version: 0, contentType: row.contentType };
    try {
      const [stored] = (await storeOf(this.#stores, "sandbox", conversation)?.read([parsePath(row.src)])) ?? [];
      if (!stored) return { ...nothing, problem: "the file is not there any more" };
      if (stored.text === null) return { ...nothing, problem: "what is in the file is no text" };
      if (!isFrom(stored, row)) return { ...nothing, problem: "the computer holds more by now: open the file again" };
      return { ...stored, content: textContent(stored.text) };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { ...nothing, problem: error.message };
    }
  }

  async #contentOf(file: DeskFile): Promise<WholeContent> {
    if (file.text !== null) return textContent(file.text);
    const known = this.#contents.get(keyOf(file));
    if (known) return known;
    const [read] = (await this.#stores.stores[file.share as Exclude<ShareName, "sandbox">]?.read([file])) ?? [];
    if (!read || !isFrom(read, file)) return empty;
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
  { content, version, contentType, eventId, isTainted, problem }: Material,
): WindowView => {
  const { shown, top, isTruncated } = excerptOf(row, content, agent.settings.windowChars);
  const isLive = row.srcType === "file";
  return {
    windowId: row.windowId,
    srcType: row.srcType === "system" ? "chatHistory" : row.srcType,
    src: row.isOpen ? row.src : "",
    contentType,
    isClosed: !row.isOpen,
    lines: content.lines,
    chars: content.chars,
    shown,
    top,
    isTruncated,
    isRaw: isOurs(row),
    state: row.state,
    isPinned: row.isPinned,
    isSystem: false,
    isTainted: isTainted === true || row.taint.length > 0,
    closesIn: row.isPinned ? undefined : row.turnsLeft,
    hasAutorefresh: isLive,
    isRefreshable: !isLive,
    title: row.isOpen ? (row.title ?? undefined) : undefined,
    attributes: row.isOpen
      ? { ...row.attributes, ...(eventId && { eventId }), ...(problem !== undefined && { problem }) }
      : {},
    queries: row.isOpen ? row.queries.filter((query) => query.version === version) : [],
  };
};
