import { readdirSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** Dumps of the embedded database lie beside it, named by their time: later ones sort behind earlier ones. */
const folderOf = (dir: string): string => join(dir, "dumps");
const dumpName = /^\d{4}-\d\d-\d\dT\d{6}Z\.dump$/;

/** Names the file of a dump of this moment. */
export const dumpFile = (dir: string, at: Date): string =>
  join(
    folderOf(dir),
    `${at
      .toISOString()
      .replace(/\.\d+Z$/, "Z")
      .replaceAll(/(?<=T.*):/g, "")}.dump`,
  );

/** Reads from its name when the dump was begun. */
export const dumpTime = (file: string): Date =>
  new Date(file.replace(/^.*?([\d-]{10})T(\d\d)(\d\d)(\d\d)Z\.dump$/, "$1T$2:$3:$4Z"));

export function newestDump(dir: string): string | undefined {
  try {
    const name = readdirSync(folderOf(dir))
      .filter((file) => dumpName.test(file))
      .sort()
      .at(-1);
    return name === undefined ? undefined : join(folderOf(dir), name);
  } catch {
    return undefined;
  }
}

/** Removes all but the newest `keep`, and what attempts left that did not come to an end. */
export async function forgetDumps(dir: string, keep: number): Promise<void> {
  const names = await readdir(folderOf(dir));
  const old = names
    .filter((name) => dumpName.test(name))
    .sort()
    .slice(0, -keep);
  const unfinished = names.filter((name) => name.endsWith(".part"));
  for (const name of [...old, ...unfinished]) await rm(join(folderOf(dir), name), { force: true });
}
