import { UserError } from "../../base/lib/errors.ts";
import type { Conversation, RoomId } from "../../base/lib/ids.ts";
import { type FileInfo, type FileRow, folderType } from "../tables/files.ts";
import type { Access } from "./access.ts";
import { parseGlob } from "./glob.ts";
import { type FilePath, formatPath, parsePath, type ShareName } from "./path.ts";
import { type Actor, nameFor, sandboxOf } from "./place.ts";
import { changingError, deletedError, missingError } from "./refusals.ts";
import { requireApproved } from "./stamp.ts";
import type { Store } from "./store.ts";
import { type FileText, isFrom, textsOf } from "./texts.ts";
import type { FileStat } from "./written.ts";

export interface FileSystemParts {
  readonly access: Access;
  /** Stores by share; a share without a store does not exist. */
  readonly stores: Readonly<Partial<Record<Exclude<ShareName, "sandbox">, Store>>>;
  /** Store of a conversation's sandbox; undefined where there are no sandboxes. */
  readonly sandboxes?: ((conversation: Conversation) => Store) | undefined;
  /** Bytes of one file, and of all files of an agent, a user or a room together. */
  readonly limits: { readonly file: number; readonly root: number };
  /** Checks a file before it is written: throws a `UserError` that says what is wrong. */
  readonly check: (path: FilePath, text: string | null) => void;
  /** Removes versions that need not be kept any more. */
  readonly forgetOld: () => Promise<void>;
}

/** Stores of a bridge, as far as they are read by more than their own part. */
export type FileStores = Pick<FileSystemParts, "stores" | "sandboxes">;

/** Store of a share as a conversation has it; undefined where there is none. */
export const storeOf = ({ stores, sandboxes }: FileStores, share: ShareName, conversation: Conversation) =>
  share === "sandbox" ? sandboxes?.(conversation) : stores[share];

/** Limit of files that a pattern may look at. */
export const listedMax = 200_000;
/** Attempts to read a file whose walls change. */
const readsMost = 5;

/** Number of what there is beside these whose names cannot be shown. */
export const hiddenIn = (files: readonly FileInfo[]): number =>
  files.reduce((count, { hidden = 0 }) => count + hidden, 0);

/** A file with the sources that are shown by it. */
interface FoundFile<Row> {
  readonly row: Row;
  readonly sources: readonly RoomId[];
}

/** The half of `FileSystem` that reads. */
export abstract class FileReader {
  protected readonly parts: FileSystemParts;
  protected readonly actor: Actor;
  readonly #shown = new Set<RoomId>();
  readonly #taint = new Set<string>();

  constructor(parts: FileSystemParts, actor: Actor) {
    this.parts = parts;
    this.actor = actor;
  }

  /**
   * Rooms and people behind walls whose content was read through this object: they count to what the turn has shown.
   */
  get sources(): readonly RoomId[] {
    return [...this.#shown];
  }

  /** Paths of tainted files whose content was read through this object. */
  get taint(): readonly string[] {
    return [...this.#taint];
  }

  /** Path as the caller writes it: people leave out the room in which they are. */
  readonly named = (path: Parameters<typeof nameFor>[1]): string => nameFor(this.actor, path);

  async read(path: string): Promise<FileRow> {
    const { row } = await this.readRow(path);
    this.shows(row);
    return row;
  }

  /** Takes note that a part of a file from `info`, `list` or `texts` is shown: a tainted file adds to the taint. */
  shows(file: FileInfo): void {
    if (file.isTainted) this.#taint.add(formatPath(file));
  }

  /** Finds the rooms and people behind whose walls a file stands. Throws where it is closed. */
  sourcesOf = (path: string): Promise<readonly RoomId[]> => this.parts.access.toRead(parsePath(path), this.actor);

  /** Throws a `UserError` where somebody here may not read all that the conversation's computer may hold. */
  requireOpenComputer = (): Promise<void> => this.parts.access.toUseComputer(this.actor);

  /** Reads a file's data without its content. */
  async info(path: string): Promise<FileInfo> {
    const file = parsePath(path);
    this.#show(await this.parts.access.toRead(file, this.actor));
    const [first] = await this.store(file.share).list(file.share, file.path, null, 1);
    if (!first) throw missingError(this.named(file));
    if (first.path !== file.path || first.contentType === folderType)
      throw new UserError(`${this.named(file)} is a folder.`);
    return first;
  }

  /**
   * Reads the texts of files from `list`, a few megabytes at a time, and leaves out files that are no text. Call `shows`
   * for each file of which a part is shown.
   */
  texts(files: readonly FileInfo[]): AsyncGenerator<FileText> {
    return textsOf((share) => this.store(share), files);
  }

  /** Reads the data of a file or folder, with the versions that can be restored. */
  async stat(path: string): Promise<FileStat> {
    const file = parsePath(path);
    const { row } = await this.#find(file);
    const versions = await this.store(file.share).versions(file);
    if (row) return { ...row, versions };
    const [first] = await this.#list(file, 1);
    if (!first) throw versions.length > 0 ? deletedError(this.named(file), versions) : missingError(this.named(file));
    const nothing = { version: 0, size: 0, eventId: null, isTainted: false, sources: [] };
    return { ...first, ...file, contentType: folderType, ...nothing, versions };
  }

  /** Files and made folders that fit a pattern, or that are below a folder if it is a plain path; in their order. */
  async list(pattern: string, limit = listedMax): Promise<FileInfo[]> {
    return (await this.listAll(pattern, limit)).files;
  }

  /** Like `list`; and how many there are in the pattern's folder whose names cannot be shown. */
  async listAll(pattern: string, limit = listedMax): Promise<{ readonly files: FileInfo[]; readonly hidden: number }> {
    const glob = parseGlob(pattern);
    const all = await this.#list({ share: glob.share, path: glob.base }, glob.isLiteral ? limit : listedMax);
    const files = (glob.isLiteral ? all : all.filter((file) => glob.fits(file.path))).slice(0, limit);
    return { files, hidden: hiddenIn(all) };
  }

  protected async readRow(path: string): Promise<FoundFile<FileRow>> {
    const file = parsePath(path);
    const { row, sources } = await this.#find(file);
    if (row?.contentType === folderType || (!row && (await this.isFolder(file)))) {
      throw new UserError(`${this.named(file)} is a folder.`);
    }
    if (!row) throw missingError(this.named(file));
    requireApproved(this.actor.approved, row);
    return { row, sources };
  }

  /** Reads a file; again if it was written meanwhile from something else, for which the walls are others. */
  async #find(file: FilePath): Promise<FoundFile<FileRow | undefined>> {
    const store = this.store(file.share);
    for (let attempt = 1; attempt <= readsMost; attempt++) {
      const sources = await this.parts.access.toRead(file, this.actor);
      const [row] = await store.read([file]);
      if (row && !isFrom(row, { sources })) continue;
      this.#show(sources);
      return { row, sources };
    }
    throw changingError(this.named(file));
  }

  async #list(folder: FilePath, limit: number): Promise<FileInfo[]> {
    const { access } = this.parts;
    const roots = await access.toList(folder, this.actor);
    const all = await this.store(folder.share).list(folder.share, folder.path, roots, limit);
    const seen = await access.filterSeen(folder.share, all, this.actor);
    this.#show(seen.sources);
    return seen.files;
  }

  protected async isFolder(file: FilePath): Promise<boolean> {
    const [first] = await this.store(file.share).list(file.share, file.path, null, 1);
    return first !== undefined && (first.path !== file.path || first.contentType === folderType);
  }

  protected store(share: ShareName): Store {
    const store = storeOf(this.parts, share, sandboxOf(this.actor));
    if (!store) throw new UserError(`There are no files in ${share}: here.`);
    return store;
  }

  #show(sources: readonly RoomId[]): void {
    for (const source of sources) this.#shown.add(source);
  }
}
