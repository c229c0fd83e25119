import type { FileInfo, FilePlace, FileRow, Files } from "../tables/files.ts";
import type { Store } from "./store.ts";

/** Finds the text that a file has before anybody writes it; undefined: there is no file. */
export type UnwrittenText = (file: FilePlace) => Promise<string | undefined>;

/** A share in which some files can be read before anybody has written them. They are not listed. */
export class UnwrittenShare implements Store {
  readonly #files: Files;
  readonly #textOf: UnwrittenText;
  readonly #since: Date;

  constructor(files: Files, textOf: UnwrittenText, since: Date) {
    this.#files = files;
    this.#textOf = textOf;
    this.#since = since;
  }

  async read(files: readonly FilePlace[]): Promise<FileRow[]> {
    const rows = await this.#files.read(files);
    const missing = files.filter((file) => !rows.some(({ share, path }) => share === file.share && path === file.path));
    const unwritten = await Promise.all(missing.map((file) => this.#read(file)));
    return [...rows, ...unwritten.filter((row) => row !== undefined)];
  }

  async list(share: string, base: string, roots: readonly string[] | null, limit: number): Promise<FileInfo[]> {
    const rows = await this.#files.list(share, base, roots, limit);
    const unwritten = rows.length === 0 ? await this.#read({ share, path: base }) : undefined;
    return unwritten ? [unwritten] : rows;
  }

  readonly versions: Store["versions"] = (file) => this.#files.versions(file);
  readonly version: Store["version"] = (file, version) => this.#files.version(file, version);
  readonly write: Store["write"] = (file) => this.#files.write(file);
  readonly append: Store["append"] = (addition) => this.#files.append(addition);
  readonly remove: Store["remove"] = (share, paths, key) => this.#files.remove(share, paths, key);
  readonly donePaths: Store["donePaths"] = (key) => this.#files.donePaths(key);
  readonly plan: Store["plan"] = (key, things) => this.#files.plan(key, things);

  async #read({ share, path }: FilePlace): Promise<FileRow | undefined> {
    const text = await this.#textOf({ share, path });
    if (text === undefined) return undefined;
    return {
      share,
      path,
      contentType: path.endsWith(".json") ? "application/json" : "text/markdown",
      owner: "",
      version: 0,
      size: Buffer.byteLength(text),
      eventId: null,
      writeKey: null,
      isTainted: false,
      sources: [],
      createdAt: this.#since,
      updatedAt: this.#since,
      text,
      binary: null,
    };
  }
}
