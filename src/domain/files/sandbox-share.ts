import { lookup } from "mime-types";
import { OtherMark, type Workspace, type WorkspaceEntry } from "../../adapters/sandbox/workspace.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest, type RoomId } from "../../base/lib/ids.ts";
import type { FilePlace, FileRow, Files, FileWrite, WriteOutcome } from "../tables/files.ts";
import { type FileInfo, folderType } from "../tables/files.ts";
import { contentOf, isTextType } from "./content.ts";
import { nameOf, parsePath } from "./path.ts";
import type { Store } from "./store.ts";
import { textBytesMost as bytesMost } from "./texts.ts";

export interface SandboxFiles {
  /** Files of the sandbox, which is started for it. Throws a `UserError` where there is none. */
  readonly open: () => Promise<Workspace>;
  /** Sources of all that may be in it, beside the conversation's own room. */
  readonly sources: () => Promise<readonly RoomId[]>;
  /** It may hold these from now on. */
  readonly hold: (sources: readonly RoomId[]) => Promise<void>;
}

/**
 * The share `sandbox:`, which is the workspace of one conversation's sandbox. Nobody keeps versions of its files: a version is a
 * mark of what is there. All of them have the walls of all that
 * the sandbox may hold, and nobody's word for what is in them.
 */
export class SandboxShare implements Store {
  readonly #files: Pick<Files, "donePaths" | "plan">;
  readonly #sandbox: SandboxFiles;

  constructor(files: Pick<Files, "donePaths" | "plan">, sandbox: SandboxFiles) {
    this.#files = files;
    this.#sandbox = sandbox;
  }

  async read(files: readonly FilePlace[]): Promise<FileRow[]> {
    const workspace = await this.#sandbox.open();
    const [only] = files;
    if (!only) return [];
    const sources = await this.#sandbox.sources();
    if (files.length === 1) {
      const entry = await workspace.stat(only.path);
      if (entry?.kind === "folder") return [{ ...infoOf(entry, sources), text: null, binary: null }];
    }
    const found =
      files.length === 1
        ? [await workspace.read(only.path, { most: bytesMost, isWhole: true })]
        : await workspace.readAll(
            files.map(({ path }) => path),
            bytesMost,
          );
    const rows = found
      .filter((one) => one !== undefined)
      .map(async ({ entry, content }) => ({ ...infoOf(entry, sources), ...(await contentOf(nameOf(entry), content)) }));
    return Promise.all(rows);
  }

  async list(_share: string, base: string, _roots: readonly string[] | null, limit: number): Promise<FileInfo[]> {
    const workspace = await this.#sandbox.open();
    const entries = await workspace.list(base, limit + 1);
    const sources = await this.#sandbox.sources();
    const infos = withoutHidden(entries).map((entry) => infoOf(entry, sources));
    // The share itself is no file of it, unless there is something to be said of it.
    const shown = base === "/" && infos.length > 1 && !infos[0]?.hidden ? infos.slice(1) : infos;
    return shown.sort((a, b) => (a.path < b.path ? -1 : 1)).slice(0, limit);
  }

  versions(): Promise<[]> {
    return Promise.resolve([]);
  }

  version(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async write(file: FileWrite): Promise<WriteOutcome> {
    const { path, key, limits, sources = [] } = file;
    const content = Buffer.from(file.text ?? file.binary ?? "");
    const [done] = key === undefined ? [] : await this.#files.donePaths(key);
    if (done !== undefined) return { state: "written", version: Number(done), size: content.length };
    if (content.length > Math.min(bytesMost, limits?.file ?? bytesMost)) return { state: "large" };
    const workspace = await this.#sandbox.open();
    await this.#sandbox.hold(sources);
    if (file.contentType === folderType) {
      await workspace.makeFolder(path);
      return { state: "written", version: 1, size: 0 };
    }
    try {
      const { mark, size } = await workspace.write(path, content, file.expected);
      if (key !== undefined) await this.#files.plan(key, [String(mark)]);
      return { state: "written", version: mark, size };
    } catch (error) {
      if (error instanceof OtherMark) return { state: "stale", version: error.mark };
      throw error;
    }
  }

  append(): Promise<never> {
    return Promise.reject(new UserError("Agents keep no working files in sandbox:."));
  }

  async remove(_share: string, paths: readonly string[], key: string): Promise<string[]> {
    const done = await this.#files.donePaths(key);
    if (done.length > 0) return done;
    const { gone, files } = await (await this.#sandbox.open()).remove(paths);
    if (gone.length === 0) return [];
    await this.#files.plan(countOf(key), [String(files)]);
    return this.#files.plan(key, [...gone]);
  }

  async removedFiles(key: string): Promise<number | undefined> {
    const [count] = await this.#files.donePaths(countOf(key));
    return count === undefined ? undefined : Number(count);
  }

  /** Gives a file, or a folder with all that is in it, another path. Returns false where there is none. */
  async rename(from: string, to: string, key: string): Promise<boolean> {
    if ((await this.#files.donePaths(key)).length > 0) return true;
    if (!(await (await this.#sandbox.open()).move(from, to))) return false;
    await this.#files.plan(key, [from]);
    return true;
  }

  readonly donePaths: Store["donePaths"] = (key) => this.#files.donePaths(key);
  readonly plan: Store["plan"] = (key, things) => this.#files.plan(key, things);
}

/** True if a path names this file, and no other: programs give their files names that no path can have. */
const isNameable = (path: string): boolean => {
  try {
    return parsePath(`sandbox:${path}`).path === path;
  } catch {
    return false;
  }
};

/** Names the count of the files that were removed. */
const countOf = (key: string): string => digest(key, "count");

/** Leaves out what has a name that no path can have, and counts it in its folder. */
function withoutHidden(entries: readonly WorkspaceEntry[]): WorkspaceEntry[] {
  const shown = new Map(entries.filter(({ path }) => isNameable(path)).map((entry) => [entry.path, entry]));
  for (const { path } of entries) {
    const folder = shown.get(path.slice(0, path.lastIndexOf("/")) || "/");
    if (!shown.has(path) && folder) shown.set(folder.path, { ...folder, hidden: (folder.hidden ?? 0) + 1 });
  }
  return [...shown.values()];
}

const infoOf = ({ path, kind, size, at, mark, hidden }: WorkspaceEntry, held: readonly RoomId[]): FileInfo => {
  const changedAt = new Date(at * 1_000);
  return {
    share: "sandbox",
    path,
    contentType: kind === "folder" ? folderType : kind === "file" ? typeByName(nameOf({ path })) : `inode/${kind}`,
    owner: "",
    version: mark,
    size: kind === "folder" ? 0 : size,
    eventId: null,
    writeKey: null,
    isTainted: true,
    sources: held,
    createdAt: changedAt,
    updatedAt: changedAt,
    ...(hidden !== undefined && { hidden }),
  };
};

/** Names of programs' sources that are registered as something else. */
const sourceNames = /\.(?:[cm]?tsx?|rs|vue|svelte|mjs|cjs)$/i;

/** Without a look at the content: text, unless its name says otherwise. */
const typeByName = (name: string): string => {
  const named = lookup(name);
  return named && !sourceNames.test(name) ? named : named && isTextType(named) ? named : "text/plain";
};
