import { UserError } from "../../base/lib/errors.ts";
import { folderType } from "../tables/files.ts";
import type { FileSystem } from "./file-system.ts";
import { parseGlob } from "./glob.ts";
import { formatPath, nameOf, parsePath } from "./path.ts";

/** Chooses where a file is put: `target` itself, or below it where it is a folder or ends with a slash. */
export async function destinationOf(files: FileSystem, from: string, target: string): Promise<string> {
  const isInside = target.trim().endsWith("/") || (await isFolder(files, target));
  return isInside ? `${formatPath(parsePath(target))}/${nameOf(parsePath(from))}` : formatPath(parsePath(target));
}

export interface Moved {
  readonly from: string;
  readonly to: string;
}

/** Throws a `UserError` where a file may not be taken away, or may not be put where it would go. */
export async function requireMovable(files: FileSystem, pattern: string, target: string): Promise<void> {
  for (const { from, to } of await movesOf(files, pattern, target)) {
    await files.requireWritable(from);
    await files.requireWritable(to);
  }
}

interface Move extends Moved {
  readonly folder: boolean;
}

/**
 * Moves one file to a file or a folder, a folder with all that is in it, or all files that fit a pattern to a folder.
 * They move one after another: where one cannot, those before it have moved, and the error says so. Run again by the
 * same operation it goes on where it was interrupted.
 */
export async function move(files: FileSystem, pattern: string, target: string): Promise<Moved[]> {
  const plan = await files.deeds.planOnce(parseGlob(pattern).share, async () =>
    (await planOf(files, pattern, target)).map((one) => JSON.stringify(one)),
  );
  const moves = plan.map((one) => JSON.parse(one) as Move);
  const done: Moved[] = [];
  for (const one of moves) {
    if (one.from === one.to) continue;
    try {
      if ((await files.deeds.removedPaths(one.from)).length === 0) await moveOne(files, one);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      throw new UserError(`${error.message} ${done.length} of ${moves.length} were moved before that.`);
    }
    done.push(one);
  }
  return done.map(({ from, to }) => ({ from, to }));
}

async function moveOne(files: FileSystem, { from, to, folder }: Move): Promise<void> {
  if (await files.rename(from, to)) return;
  if (folder) await files.makeFolder(to);
  else await files.copy(from, to);
  await files.remove(from);
}

/** @throws UserError where there is nothing to move, or not to there */
async function planOf(files: FileSystem, pattern: string, target: string): Promise<Move[]> {
  const moves = await movesOf(files, pattern, target);
  if (moves.length === 0) throw new UserError(`Nothing fits ${pattern}.`);
  const twice = moves.find(({ to }, index) => moves.findIndex((other) => other.to === to) !== index);
  if (twice) throw new UserError(`Several files would become ${twice.to}. Nothing was moved.`);
  return moves;
}

async function movesOf(files: FileSystem, pattern: string, target: string): Promise<Move[]> {
  const glob = parseGlob(pattern);
  const listed = await files.list(pattern);
  const [only] = listed;
  const plan = (path: string, to: string, contentType: string) => ({
    from: formatPath({ share: glob.share, path }),
    to: formatPath(parsePath(to)),
    folder: contentType === folderType,
  });
  if (!glob.isLiteral) {
    return listed
      .filter((file) => file.contentType !== folderType)
      .map((file) => plan(file.path, `${target}/${nameOf(file)}`, file.contentType));
  }
  const to = await destinationOf(files, pattern, target);
  const isWhole = listed.length > 0 && files.canRename(pattern, to);
  if (isWhole) return [plan(glob.base, to, "")];
  if (listed.length === 1 && only?.path === glob.base) return [plan(only.path, to, only.contentType)];
  const folder = formatPath({ share: glob.share, path: glob.base });
  if (listed.length > 0 && `${to}/`.startsWith(`${folder}/`)) {
    throw new UserError(`${files.named(folder)} cannot be moved into itself.`);
  }
  // The content of a folder goes before the folder itself.
  return listed
    .map((file) => plan(file.path, `${to}${file.path.slice(glob.base.length)}`, file.contentType))
    .sort((a, b) => b.from.length - a.from.length);
}

async function isFolder(files: FileSystem, path: string): Promise<boolean> {
  try {
    return (await files.stat(path)).contentType === folderType;
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}
