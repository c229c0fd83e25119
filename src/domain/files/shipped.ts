import { UserError } from "../../base/lib/errors.ts";
import type { Addition } from "../tables/append.ts";
import type { FileInfo, FilePlace, FileRow, Files, FileWrite, OldVersion, WriteOutcome } from "../tables/files.ts";
import { formatPath } from "./path.ts";
import type { Store } from "./store.ts";

/** Files that come with the program: their text by path. */
export type Shipped = ReadonlyMap<string, string>;

/** `system:`: what admins wrote lies over what is shipped; once it is deleted, the shipped file is there again. */
export class SystemShare implements Store {
  readonly #files: Files;
  readonly #shipped: ReadonlyMap<string, FileRow>;

  constructor(files: Files, shipped: Shipped, since: Date) {
    this.#files = files;
    this.#shipped = new Map([...shipped].map(([path, text]) => [path, shippedRow(path, text, since)]));
  }

  async read(files: readonly FilePlace[]): Promise<FileRow[]> {
    const rows = await this.#files.read(files);
    const found = new Set(rows.map((row) => row.path));
    return [...rows, ...files.flatMap(({ path }) => (found.has(path) ? [] : (this.#shipped.get(path) ?? [])))];
  }

  async list(share: string, base: string, roots: readonly string[] | null, limit: number): Promise<FileInfo[]> {
    const rows = await this.#files.list(share, base, roots, limit);
    const found = new Set(rows.map((row) => row.path));
    const folder = base === "/" ? base : `${base}/`;
    const under = [...this.#shipped.values()].filter(
      ({ path }) => (path === base || path.startsWith(folder)) && !found.has(path),
    );
    return [...rows, ...under].sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, limit);
  }

  versions(file: FilePlace): Promise<OldVersion[]> {
    return this.#files.versions(file);
  }

  version(file: FilePlace, version: number): Promise<FileRow | undefined> {
    return this.#files.version(file, version);
  }

  write(file: FileWrite): Promise<WriteOutcome> {
    return this.#files.write(file);
  }

  append(addition: Addition): Promise<WriteOutcome> {
    return this.#files.append(addition);
  }

  donePaths(key: string): Promise<string[]> {
    return this.#files.donePaths(key);
  }

  plan(key: string, things: readonly string[]): Promise<string[]> {
    return this.#files.plan(key, things);
  }

  async remove(share: string, paths: readonly string[], key: string): Promise<string[]> {
    const gone = await this.#files.remove(share, paths, key);
    const [shipped] = paths.filter((path) => !gone.includes(path) && this.#shipped.has(path));
    if (shipped === undefined) return gone;
    throw new UserError(
      `${formatPath({ share, path: shipped })} comes with the program, and cannot be deleted. You can replace it: write a file of this name.`,
    );
  }
}

const shippedRow = (path: string, text: string, since: Date): FileRow => ({
  share: "system",
  path,
  contentType: "text/markdown",
  owner: "",
  version: 0,
  size: Buffer.byteLength(text),
  eventId: null,
  writeKey: null,
  isTainted: false,
  sources: [],
  createdAt: since,
  updatedAt: since,
  text,
  binary: null,
});
