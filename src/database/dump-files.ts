import { readdirSync } from "node:fs";
import { join } from "node:path";

/** Dumps of the embedded database lie beside it, named by their time: later ones sort behind earlier ones. */
const folderOf = (dir: string): string => join(dir, "dumps");
const dumpName = /^\d{4}-\d\d-\d\dT\d{6}Z\.dump$/;

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
