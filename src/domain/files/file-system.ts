import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import { type FileInfo, type FileRow, type FileWrite, folderType, type OldVersion } from "../tables/files.ts";
import type { Access } from "./access.ts";
import { contentOf } from "./content.ts";
import { Deeds } from "./deeds.ts";
import { parseGlob } from "./glob.ts";
import { type FilePath, formatPath, nameOf, parsePath, type ShareName } from "./path.ts";
import { type Actor, nameFor, placeOf } from "./place.ts";
import { deletedError, missingError, refusal, StaleVersion } from "./refusals.ts";
import { requireApproved } from "./stamp.ts";
import type { Store } from "./store.ts";
import { type FileText, textsOf } from "./texts.ts";
import type { Written } from "./written.ts";

export interface FileSystemParts {
  readonly access: Access;
  /** Stores by share; a share without a store does not exist. */
  readonly stores: Readonly<Partial<Record<ShareName, Store>>>;
  /** Bytes of one file, and of all files of an agent, a user or a room together. */
  readonly limits: { readonly file: number; readonly root: number };
  /** Checks a file before it is written: throws a `UserError` that says what is wrong. */
  readonly check: (path: FilePath, text: string | null) => void;
  /** Removes versions that need not be kept any more. */
  readonly forgetOld: () => Promise<void>;
}

export interface FileStat extends FileInfo {
  readonly versions: readonly OldVersion[];
}

export interface WriteOptions {
  /** Version that the writer has read: no other is overwritten. 0: there may be no file. */
  readonly expected?: number | undefined;
  /** The event that the content came with. */
  readonly eventId?: EventId | null | undefined;
  /** True if the content comes from a tainted file. */
  readonly tainted?: boolean | undefined;
  /** See `FileWrite`. */
  readonly place?: number | undefined;
}

/** Limit of files that a pattern may look at. */
const listedMax = 200_000;

/**
 * Files as one operation sees them: every access is decided for its actor, at that moment. Paths are texts as people
 * and models write them. A mistake that the caller can mend is a `UserError`.
 */
export class FileSystem {
  readonly #parts: FileSystemParts;
  readonly #actor: Actor;
  readonly deeds: Deeds;
  readonly #shown = new Set<RoomId>();
  readonly #taint = new Set<string>();

  /** @param key the same for the same operation, however often it is run: its writes are then carried out once */
  constructor(parts: FileSystemParts, actor: Actor, key: string) {
    this.#parts = parts;
    this.#actor = actor;
    this.deeds = new Deeds(key, (share) => this.#store(share));
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
  readonly named = (path: Parameters<typeof nameFor>[1]): string => nameFor(this.#actor, path);

  async read(path: string): Promise<FileRow> {
    const row = await this.#read(path);
    this.shows(row);
    return row;
  }

  /** Takes note that a part of a file from `info`, `list` or `texts` is shown: a tainted file adds to the taint. */
  shows(file: FileInfo): void {
    if (file.tainted) this.#taint.add(formatPath(file));
  }

  /** Reads a file's data without its content. */
  async info(path: string): Promise<FileInfo> {
    const file = parsePath(path);
    this.#show(await this.#parts.access.toRead(file, this.#actor));
    const [first] = await this.#store(file.share).list(file.share, file.path, null, 1);
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
    return textsOf((share) => this.#store(share), files);
  }

  /** Reads the data of a file or folder, with the versions that can be restored. */
  async stat(path: string): Promise<FileStat> {
    const file = parsePath(path);
    const row = await this.#find(file);
    const versions = await this.#store(file.share).versions(file);
    if (row) return { ...row, versions };
    const below = await this.#list(file, 1);
    const [first] = below;
    if (!first) throw versions.length > 0 ? deletedError(this.named(file), versions) : missingError(this.named(file));
    return { ...first, ...file, contentType: folderType, version: 0, size: 0, eventId: null, tainted: false, versions };
  }

  /**
   * True if there is a file that this operation did not make itself. People who may write there are told so even if they
   * may not read it.
   */
  async exists(path: string): Promise<boolean> {
    await this.requireWritable(path);
    const file = parsePath(path);
    const [row] = await this.#store(file.share).read([file]);
    return row !== undefined && row.writeKey !== this.deeds.keyOf(file);
  }

  /** Throws a `UserError` where this actor may not write, whatever was read before. */
  requireWritable(path: string): Promise<void> {
    return this.#parts.access.toWrite(parsePath(path), { ...this.#actor, sources: [] });
  }

  /** True if the path is the agent's own scratchpad; writing decides who may write it. */
  isScratchpad(path: string): boolean {
    return placeOf(parsePath(path), this.#actor, () => false).kind === "scratchpad";
  }

  /** Finds the room, other than the conversation's own, whose people will see what is done to the path. */
  placeElsewhere(path: string): RoomId | undefined {
    const place = placeOf(parsePath(path), this.#actor, () => false);
    return place.kind === "walled" && place.source !== this.#actor.roomId ? place.source : undefined;
  }

  /** Files and made folders that fit a pattern, or that are below a folder if it is a plain path; in their order. */
  async list(pattern: string, limit = listedMax): Promise<FileInfo[]> {
    const glob = parseGlob(pattern);
    const all = await this.#list({ share: glob.share, path: glob.base }, glob.literal ? limit : listedMax);
    return (glob.literal ? all : all.filter((file) => glob.fits(file.path))).slice(0, limit);
  }

  /** Makes or changes a file. The type of its content is found out. */
  async write(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<Written> {
    const file = parsePath(path);
    if (file.path === "/") throw new UserError(`${this.named(file)} is a share: name a file in it.`);
    await this.#mayWrite(file);
    const typed = await contentOf(nameOf(file), content);
    this.#parts.check(file, typed.text);
    return this.#write({ ...file, ...typed, owner: this.#author(), key: this.deeds.keyOf(file), ...options });
  }

  /** Changes a file's text; again if somebody else has written meanwhile. A file that does not exist has an empty text. */
  async edit(path: string, change: (text: string) => string | Promise<string>, expected?: number): Promise<Written> {
    const file = parsePath(path);
    await this.#mayWrite(file);
    for (let attempt = 1; ; attempt++) {
      const [row] = await this.#store(file.share).read([file]);
      if (row?.binary) throw new UserError(`${this.named(file)} is no text.`);
      try {
        const options = { expected: expected ?? row?.version ?? 0, tainted: row?.tainted, place: row?.place };
        return await this.write(path, await change(row?.text ?? ""), options);
      } catch (error) {
        if (!(error instanceof StaleVersion) || expected !== undefined || attempt === 10) throw error;
      }
    }
  }

  /** Copies a file to another path. If the file came with an event, a redaction of the event removes the copy, too. */
  async copy(from: string, to: string, options: Pick<WriteOptions, "expected"> = {}): Promise<Written> {
    const { text, binary, eventId, tainted } = await this.#read(from);
    return this.write(to, text ?? binary ?? "", { ...options, eventId, tainted });
  }

  /** Makes a folder if there is none; returns its path. */
  async makeFolder(path: string): Promise<string> {
    const file = parsePath(path);
    await this.#mayWrite(file);
    if (!(await this.#isFolder(file))) {
      const row = { ...file, contentType: folderType, text: null, owner: this.#author(), expected: 0 };
      await this.#write({ ...row, key: this.deeds.keyOf(file) });
    }
    return formatPath(file);
  }

  /** Removes a file, or a folder with everything in it. Returns the paths of the files that were there, also when run again. */
  async remove(path: string, options: { readonly recursive?: boolean | undefined } = {}): Promise<string[]> {
    const file = parsePath(path);
    const done = await this.deeds.removedPaths(path);
    if (done.length > 0) return done;
    await this.#mayWrite(file);
    const store = this.#store(file.share);
    const all = await store.list(file.share, file.path, null, listedMax);
    const below = all.filter((one) => one.path !== file.path);
    if (below.length > 0 && !options.recursive) {
      throw new UserError(
        `${this.named(file)} is a folder with ${below.length} files: say recursive to remove them all.`,
      );
    }
    // Elsewhere the root alone decides.
    for (const one of file.share === "agents" ? below : []) await this.#mayWrite({ share: file.share, path: one.path });
    const paths = below.length > 0 ? all.map((one) => one.path) : [file.path];
    const gone = await store.remove(file.share, paths, this.deeds.keyOf(file));
    if (gone.length === 0) throw missingError(this.named(file));
    return gone.map((one) => formatPath({ share: file.share, path: one }));
  }

  /** Brings back an old version, by default the newest: also of a file that was deleted. */
  async restore(path: string, version?: number): Promise<Written> {
    const file = parsePath(path);
    await this.#mayWrite(file);
    const store = this.#store(file.share);
    const versions = await store.versions(file);
    const wanted = version ?? versions[0]?.version;
    const old = wanted === undefined ? undefined : await store.version(file, wanted);
    if (!old) {
      const known = versions.map((one) => one.version).join(", ");
      throw new UserError(`${this.named(file)} has no such version to restore. Versions kept: ${known || "none"}.`);
    }
    const { contentType, text, binary, owner, eventId, tainted, place } = old;
    const key = this.deeds.keyOf(file);
    this.#parts.check(file, text);
    return this.#write({ ...file, contentType, text, binary, owner, eventId, tainted, place, key });
  }

  /** Everything that this operation has read counts to what was shown, too. */
  #mayWrite(file: FilePath): Promise<void> {
    return this.#parts.access.toWrite(file, { ...this.#actor, sources: [...this.#actor.sources, ...this.#shown] });
  }

  async #read(path: string): Promise<FileRow> {
    const file = parsePath(path);
    const row = await this.#find(file);
    if (row?.contentType === folderType || (!row && (await this.#isFolder(file)))) {
      throw new UserError(`${this.named(file)} is a folder.`);
    }
    if (!row) throw missingError(this.named(file));
    requireApproved(this.#actor.approved, row);
    return row;
  }

  async #find(file: FilePath): Promise<FileRow | undefined> {
    const store = this.#store(file.share);
    this.#show(await this.#parts.access.toRead(file, this.#actor));
    const [row] = await store.read([file]);
    return row;
  }

  async #list(folder: FilePath, limit: number): Promise<FileInfo[]> {
    const { access } = this.#parts;
    const roots = await access.toList(folder, this.#actor);
    const all = await this.#store(folder.share).list(folder.share, folder.path, roots, limit);
    const seen = await access.filterSeen(folder.share, all, this.#actor);
    for (const source of seen.sources) this.#shown.add(source);
    return seen.files;
  }

  async #isFolder(file: FilePath): Promise<boolean> {
    const [first] = await this.#store(file.share).list(file.share, file.path, null, 1);
    return first !== undefined && (first.path !== file.path || first.contentType === folderType);
  }

  async #write(file: FileWrite): Promise<Written> {
    const { limits } = this.#parts;
    const tainted = this.#actor.tainted || this.#taint.size > 0 || file.tainted === true;
    const outcome = await this.#store(file.share as ShareName).write({ ...file, tainted, limits });
    if (outcome.state === "written") {
      return { path: formatPath(file), contentType: file.contentType, version: outcome.version, size: outcome.size };
    }
    if (outcome.state === "stale") throw new StaleVersion(this.named(file), file.expected ?? 0, outcome.version);
    throw new UserError(refusal(this.named(file), file, outcome.state, limits));
  }

  #store(share: ShareName): Store {
    const store = this.#parts.stores[share];
    if (!store) throw new UserError(`There are no files in ${share}: here.`);
    return store;
  }

  #show(source: RoomId | undefined): void {
    if (source !== undefined) this.#shown.add(source);
  }

  #author(): string {
    const { agent, by, requesters } = this.#actor;
    return by === "person" ? (requesters[0] ?? agent.userId) : agent.userId;
  }
}
