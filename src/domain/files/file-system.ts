import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { toStorable } from "../../base/lib/storable.ts";
import { type FileRow, type FileWrite, folderType } from "../tables/files.ts";
import { isOwnWorkingFile } from "./access.ts";
import { contentOf, isFolder } from "./content.ts";
import { Deeds } from "./deeds.ts";
import { FileReader, type FileSystemParts, hiddenIn, listedMax } from "./file-reader.ts";
import { type FilePath, formatPath, nameOf, parsePath, type ShareName } from "./path.ts";
import { type Actor, placeOf, storedSources } from "./place.ts";
import { missingError, refusal, StaleVersion } from "./refusals.ts";
import type { WriteOptions, Written } from "./written.ts";

/** Attempts to change a file that others change as well. */
const editsMost = 50;
/**
 * Files as one operation sees them: every access is decided for its actor, at that moment. Paths are texts as people
 * and models write them. A mistake that the caller can mend is a `UserError`.
 */
export class FileSystem extends FileReader {
  readonly deeds: Deeds;
  /** Files that were removed, by the path that was named. */
  readonly #removed = new Map<string, number>();

  /** @param key the same for the same operation, however often it is run: its writes are then carried out once */
  constructor(parts: FileSystemParts, actor: Actor, key: string) {
    super(parts, actor);
    this.deeds = new Deeds(key, (share) => this.store(share));
  }

  /**
   * True if there is a file that this operation did not make itself. People who may write there are told so even if they
   * may not read it.
   */
  async exists(path: string): Promise<boolean> {
    await this.requireWritable(path);
    const file = parsePath(path);
    const [row] = await this.store(file.share).read([file]);
    return row !== undefined && row.writeKey !== this.deeds.keyOf(file);
  }

  /** Throws a `UserError` where this actor may not write, whatever was read before. */
  requireWritable(path: string): Promise<void> {
    return this.parts.access.toWrite(parsePath(path), { ...this.actor, sources: [] });
  }

  /** True if the path is the agent's own scratchpad; writing decides who may write it. */
  isScratchpad(path: string): boolean {
    return placeOf(parsePath(path), this.actor, () => false).kind === "scratchpad";
  }

  /** Finds the room, other than the conversation's own, whose people will see what is done to the path. */
  placeElsewhere(path: string): RoomId | undefined {
    const place = placeOf(parsePath(path), this.actor, () => false);
    return place.kind === "walled" && place.source !== this.actor.roomId ? place.source : undefined;
  }

  /** Makes or changes a file. The type of its content is found out. */
  async write(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<Written> {
    const file = parsePath(path);
    if (file.path === "/") throw new UserError(`${this.named(file)} is a share: name a file in it.`);
    await this.#mayWrite(file, options.isPutAside);
    const typed = await contentOf(nameOf(file), content);
    this.parts.check(file, typed.text);
    return this.#write({ ...file, ...typed, owner: this.#author(), key: this.deeds.keyOf(file), ...options });
  }

  /**
   * Changes a file's text; again if somebody else has written meanwhile. A file that does not exist has an empty text, and so
   * has a working file of the conversation that not all who are here may read: it is put aside.
   */
  async edit(path: string, change: (text: string) => string | Promise<string>, expected?: number): Promise<Written> {
    const file = parsePath(path);
    const isOwn = isOwnWorkingFile(file, this.actor);
    await this.#mayWrite(file, isOwn);
    for (let attempt = 1; ; attempt++) {
      const [row] = await this.store(file.share).read([file]);
      const isPutAside = row !== undefined && isOwn && (await this.#isClosedHere(file, row));
      if (row?.binary) throw new UserError(`${this.named(file)} is no text.`);
      try {
        const known = { expected: expected ?? row?.version ?? 0 };
        if (isPutAside) return await this.write(path, await change(""), { ...known, isPutAside });
        const sources = row && [...this.#madeFrom(), ...row.sources];
        const options = { ...known, isTainted: row?.isTainted, place: row?.place, sources };
        return await this.write(path, await change(row?.text ?? ""), options);
      } catch (error) {
        if (!(error instanceof StaleVersion) || expected !== undefined || attempt === editsMost) throw error;
      }
    }
  }

  /**
   * Puts lines at the end of one of the agent's working files; other writers lose nothing by it. Returns the bytes that it
   * has now. A file that not all who are here may read is put aside.
   */
  async append(path: string, text: string): Promise<number> {
    const file = parsePath(path);
    await this.#mayWrite(file, true);
    const isTainted = this.actor.isTainted || this.taint.length > 0;
    const { agent, roomId } = this.actor;
    const outcome = await this.store(file.share).append({
      ...file,
      text: toStorable(text),
      owner: this.#author(),
      isTainted,
      sources: storedSources(file, this.actor, this.#madeFrom()),
      roomId,
      agentOwner: agent.owner,
      key: this.deeds.keyOf(file),
    });
    if (outcome.state === "written") return outcome.size;
    throw new UserError(refusal(this.named(file), file, "blocked", this.parts.limits));
  }

  /** Copies a file to another path. If the file came with an event, a redaction of the event removes the copy, too. */
  async copy(from: string, to: string, options: Pick<WriteOptions, "expected"> = {}): Promise<Written> {
    const { row, sources: own } = await this.readRow(from);
    const { text, binary, eventId, isTainted } = row;
    const sources = this.actor.by === "model" ? [...this.actor.sources, ...own] : own;
    return this.write(to, text ?? binary ?? "", { ...options, eventId, isTainted, sources });
  }

  /** Gives a file or folder another path as it is, where its share can do that. Returns false where that is left to the caller. */
  async rename(from: string, to: string): Promise<boolean> {
    const [file, target] = [parsePath(from), parsePath(to)];
    const store = this.store(file.share);
    if (file.share !== target.share || !store.rename) return false;
    await this.parts.access.toRead(file, this.actor);
    await this.#mayWrite(file);
    await this.#mayWrite(target);
    if (!(await store.rename(file.path, target.path, this.deeds.keyOf(file)))) throw missingError(this.named(file));
    return true;
  }

  /** True if files can be given another path there as they are, whole folders at once. */
  canRename(from: string, to: string): boolean {
    const [{ share }, target] = [parsePath(from), parsePath(to)];
    return share === target.share && this.store(share).rename !== undefined;
  }

  /** Makes a folder if there is none; returns its path. */
  async makeFolder(path: string): Promise<string> {
    const file = parsePath(path);
    await this.#mayWrite(file);
    if (!(await this.isFolder(file))) {
      const row = { ...file, contentType: folderType, text: null, owner: this.#author(), expected: 0 };
      await this.#write({ ...row, key: this.deeds.keyOf(file) });
    }
    return formatPath(file);
  }

  /** Removes a file, or a folder with everything in it. Returns the paths of the files that were there, also when run again. */
  async remove(path: string, options: { readonly isRecursive?: boolean | undefined } = {}): Promise<string[]> {
    const file = parsePath(path);
    const done = await this.deeds.removedPaths(path);
    if (done.length > 0) return done;
    await this.#mayWrite(file);
    const store = this.store(file.share);
    const all = await store.list(file.share, file.path, null, listedMax);
    const below = all.filter((one) => one.path !== file.path);
    const inside = below.length + hiddenIn(all);
    const many = `${this.named(file)} is a folder with ${inside} files: say recursive to remove them all.`;
    if (inside > 0 && !options.isRecursive) throw new UserError(many);
    // Elsewhere the root alone decides.
    for (const one of file.share === "agents" ? below : []) await this.#mayWrite({ share: file.share, path: one.path });
    const listed = all.map((one) => one.path).filter((one) => one !== "/");
    const paths = below.length > 0 ? listed : [file.path];
    const gone = await store.remove(file.share, paths, this.deeds.keyOf(file));
    if (gone.length === 0) throw missingError(this.named(file));
    const folders = new Set(all.filter(isFolder).map((one) => one.path));
    this.#removed.set(formatPath(file), gone.filter((one) => !folders.has(one)).length);
    return gone.map((one) => formatPath({ share: file.share, path: one }));
  }

  /** Number of the files that were removed with a path; undefined where that was before an interruption, and is not known. */
  async removedFiles(path: string): Promise<number | undefined> {
    const file = parsePath(path);
    const counted = await this.store(file.share).removedFiles?.(this.deeds.keyOf(file));
    return counted ?? this.#removed.get(formatPath(file));
  }

  /** Brings back an old version, by default the newest: also of a file that was deleted. */
  async restore(path: string, version?: number): Promise<Written> {
    const file = parsePath(path);
    await this.#mayWrite(file);
    const store = this.store(file.share);
    const versions = await store.versions(file);
    const wanted = version ?? versions[0]?.version;
    const old = wanted === undefined ? undefined : await store.version(file, wanted);
    if (!old) {
      const known = versions.map((one) => one.version).join(", ");
      throw new UserError(`${this.named(file)} has no such version to restore. Versions kept: ${known || "none"}.`);
    }
    const { contentType, text, binary, owner, eventId, isTainted, place, sources } = old;
    const key = this.deeds.keyOf(file);
    this.parts.check(file, text);
    return this.#write({ ...file, contentType, text, binary, owner, eventId, isTainted, place, sources, key });
  }

  /** Everything that this operation has read counts to what was shown, too. */
  #mayWrite(file: FilePath, isKept?: boolean): Promise<void> {
    const sources = [...this.actor.sources, ...this.sources];
    return this.parts.access.toWrite(file, { ...this.actor, sources }, isKept);
  }

  /** Sources of a text of this actor: a person's word is behind no wall, a model has been shown all that its turn was. */
  #madeFrom(): RoomId[] {
    return [...(this.actor.by === "model" ? this.actor.sources : []), ...this.sources];
  }

  /** True if somebody here may not read what stands in the file. */
  async #isClosedHere(file: FilePath, { text }: FileRow): Promise<boolean> {
    return text !== "" && (await this.parts.access.isClosed(file, this.actor));
  }

  async #write(file: FileWrite): Promise<Written> {
    const { limits } = this.parts;
    const isTainted = this.actor.isTainted || this.taint.length > 0 || file.isTainted === true;
    const sources = storedSources(file as FilePath, this.actor, file.sources ?? this.#madeFrom());
    const outcome = await this.store(file.share as ShareName).write({ ...file, isTainted, sources, limits });
    if (outcome.state === "written") {
      return { path: formatPath(file), contentType: file.contentType, version: outcome.version, size: outcome.size };
    }
    if (outcome.state === "stale") throw new StaleVersion(this.named(file), file.expected ?? 0, outcome.version);
    throw new UserError(refusal(this.named(file), file, outcome.state, limits));
  }

  #author(): string {
    const { agent, by, requesters } = this.actor;
    return by === "person" ? (requesters[0] ?? agent.userId) : agent.userId;
  }
}
