import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { windowElement } from "../../base/prompt/window.ts";
import type { Agent } from "../agents/agent.ts";
import { type Submodel, submodelCharsMax } from "../budget/submodel.ts";
import type { FileSystem } from "../files/file-system.ts";
import type { KnowledgeSought, Passage } from "../tables/knowledge-query.ts";
import type { DeskFile, StoredQuery, WindowChanges, WindowDraft, WindowRow } from "../tables/windows.ts";
import { type Desks, excerptOf, type Material, seatOf, viewOf, type WholeMaterial } from "./desk.ts";
import { SystemWindows } from "./system-window.ts";
import { type Outcome, pose, type WindowAction } from "./window-action.ts";

/** Content that a source gave when it was read. */
interface Snapshot {
  /** `text/lmml`: the content is one element `content`, whose children are the lines. */
  readonly contentType: string;
  readonly content: string;
  /** Rooms and users whose content is in it. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts in it: paths of files, and hosts of the web as `web:HOST`. */
  readonly taint: readonly string[];
  readonly title?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>>;
  /** Addresses of the web that stand in it, as `addressesIn` gives them. */
  readonly addresses?: readonly string[];
  /** Images that the caller sees beside the window. */
  readonly images?: Outcome["images"];
}

/** Finds passages of what the agent knows, behind the walls of the conversation. */
export type PassageFinder = (question: KnowledgeSought) => Promise<readonly Passage[]>;

/** Services by which a source is read. */
interface SourceContext {
  readonly files: FileSystem;
  readonly findPassages: PassageFinder;
  readonly signal: AbortSignal;
}

/** Source of a window that is not read anew with each step. */
export interface WindowSource {
  /** `args` is JSON. Throws a UserError where it cannot be read, or not by those who are concerned. */
  read(src: string, args: string, context: SourceContext): Promise<Snapshot>;
}

export type WindowSources = Readonly<Partial<Record<WindowRow["srcType"], WindowSource>>>;

export interface WindowParts {
  readonly desks: Desks;
  readonly sources: WindowSources;
}

interface Origin extends SourceContext {
  readonly agent: Agent;
  readonly roomId: RoomId;
  readonly key: string;
  readonly submodel: Submodel;
  readonly untrusted: (names: Iterable<string>) => Promise<readonly string[]>;
}

export type WindowTarget = Pick<WindowDraft, "srcType" | "src"> &
  Partial<
    Pick<WindowDraft, "arguments" | "title" | "top" | "attributes" | "contentType" | "content" | "sources" | "taint">
  >;

/** Windows that can be pinned beside one another. */
const pinnedMax = 10;
/** Answers that stand above a window. */
const queriesMax = 3;

const changeText = (isSame: boolean): string => `The page ${isSame ? "is as it was" : "has changed"}.`;

/** The desk of a conversation, as one operation sees it. */
export class WindowDesk {
  readonly #desks: Desks;
  readonly #sources: WindowSources;
  readonly #system: SystemWindows;
  readonly #origin: Origin;

  constructor(parts: WindowParts, origin: Origin) {
    this.#desks = parts.desks;
    this.#sources = parts.sources;
    this.#system = new SystemWindows(parts.desks, origin);
    this.#origin = origin;
  }

  /** Opens a window, or turns to the one that is open on the same. */
  async open(target: WindowTarget): Promise<Outcome & { readonly windowId: string }> {
    const { agent, key } = this.#origin;
    const args = target.arguments ?? "";
    const before = target.srcType === "page" ? await this.#contentOf(target.src, args) : undefined;
    const read = await this.#read(target.srcType, target.src, args);
    const { addresses: _, images, ...drafted } = read ?? {};
    const windowId = await this.#desks.table.open(this.#seat, {
      arguments: args,
      contentType: "text/plain",
      content: null,
      sources: [],
      taint: [],
      ...target,
      ...drafted,
      title: target.title ?? read?.title,
      attributes: { ...target.attributes, ...read?.attributes },
      height: agent.settings.windowLines,
      turnsLeft: agent.settings.windowTurns,
      key,
    });
    const { row, material } = await this.#find(windowId);
    const outcome = this.#outcome(row, material, "open");
    const said = before === undefined ? outcome.said : `${outcome.said} ${changeText(before === row.content)}`;
    return { ...outcome, said, windowId, images };
  }

  async act(windowId: string, action: WindowAction, argument: string): Promise<Outcome> {
    if (this.#system.has(windowId)) return this.#system.act(windowId, action, argument);
    const { row, material, files, pinned } = await this.#find(windowId);
    const { agent, key } = this.#origin;
    if (action === "close") {
      await this.#desks.table.close(this.#seat, row.id);
      return { said: `Window ${windowId} is closed.`, sources: [], taint: [] };
    }
    if (!row.isOpen) throw new UserError(`Window ${windowId} is closed to the people here: it can only be closed.`);
    if (row.key === key) return this.#outcome(row, material, action);
    if (action === "pin" && pinned >= pinnedMax)
      throw new UserError(`${pinnedMax} windows are pinned already: unpin one first.`);
    const { bottom } = excerptOf(row, material.content, agent.settings.windowChars);
    const before = { ...row, top: row.top ?? 1 };
    const refreshed = action === "refresh" ? await this.#refresh(row) : undefined;
    const changes: WindowChanges = {
      ...row,
      ...pose(before, { action, argument }, { lines: material.content.lines, bottom }),
      turnsLeft: agent.settings.windowTurns,
      ...(action === "query" && {
        queries: await this.#ask(row, await this.#desks.whole(agent, row, files), argument),
      }),
      ...refreshed?.changes,
    };
    await this.#desks.table.change(this.#seat, row.id, changes, key);
    const now = { ...row, ...changes };
    const shown =
      action === "refresh" ? (await this.#find(windowId)).material : await this.#desks.material(agent, now, files);
    const outcome = this.#outcome(now, shown, action);
    if (action !== "refresh" || row.srcType !== "page") return outcome;
    const said = `${outcome.said} ${changeText(now.content === row.content)}`;
    return { ...outcome, said, images: refreshed?.images };
  }

  get #seat() {
    return seatOf(this.#origin.agent, this.#origin.roomId);
  }

  /** Content of the page that is open already; undefined where it is not. */
  async #contentOf(src: string, args: string): Promise<string | undefined> {
    const { windows } = await this.#desks.table.desk(this.#seat);
    const row = windows.find((one) => one.srcType === "page" && one.src === src && one.arguments === args);
    return row?.isOpen ? (row.content ?? undefined) : undefined;
  }

  async #find(
    windowId: string,
  ): Promise<{ row: WindowRow; material: Material; files: readonly DeskFile[]; pinned: number }> {
    const { windows, files } = await this.#desks.table.desk(this.#seat);
    const opened = windows.filter(({ srcType }) => srcType !== "system");
    const row = opened.find((one) => one.windowId === windowId);
    if (!row) {
      const known = opened.map((one) => one.windowId).join(", ") || "none but those that are always there";
      throw new UserError(`There is no window ${windowId} here. Open: ${known}.`);
    }
    const pinned = opened.filter((one) => one.isPinned).length;
    return { row, material: await this.#desks.material(this.#origin.agent, row, files), files, pinned };
  }

  async #ask(row: WindowRow, { content, version, problem }: WholeMaterial, question: string): Promise<StoredQuery[]> {
    if (question === "") throw new UserError("The argument must be the question.");
    if (problem !== undefined) throw new UserError(`Window ${row.windowId}: ${problem}.`);
    const answer = await this.#origin.submodel.ask(question, content.text(submodelCharsMax));
    const others = row.queries.filter((one) => one.query !== question && one.version === version);
    return [...others, { query: question, answer, version }].slice(-queriesMax);
  }

  async #refresh(row: WindowRow) {
    const read = await this.#read(row.srcType, row.src, row.arguments);
    if (!read) return undefined;
    const { content, sources, taint, title = null, attributes, images } = read;
    // All attributes of a page tell how it was read.
    const all = row.srcType === "page" ? attributes : { ...row.attributes, ...attributes };
    return { changes: { content, sources, taint, queries: [], title, attributes: all ?? {} }, images };
  }

  async #read(srcType: WindowRow["srcType"], src: string, args: string): Promise<Snapshot | undefined> {
    const read = await this.#sources[srcType]?.read(src, args, this.#origin);
    if (read?.addresses) await this.#desks.table.keepAddresses(this.#seat, read.addresses);
    return read;
  }

  #outcome(row: WindowRow, material: Material, done: WindowAction | "open"): Outcome {
    const view = viewOf(this.#origin.agent, row, material);
    const { top, bottom } = excerptOf(row, material.content, this.#origin.agent.settings.windowChars);
    const seen =
      row.state === "minimized"
        ? "is minimized"
        : top === 0
          ? `is empty${material.problem === undefined ? "" : `: ${material.problem}`}`
          : `shows lines ${top} to ${bottom} of ${material.content.lines}`;
    const answer = done === "query" ? row.queries.at(-1)?.answer : undefined;
    const opened = done === "open" ? `Window opened with ID ${row.windowId}.` : undefined;
    const now = `Window ${row.windowId} ${seen}.`;
    return {
      said: [opened, now, answer].filter((part) => part !== undefined).join(" "),
      shown: windowElement(view),
      sources: row.sources,
      taint: answer === undefined ? [] : material.isTainted ? [...row.taint, row.src] : row.taint,
    };
  }
}
