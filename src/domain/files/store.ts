import type { Files } from "../tables/files.ts";

/** Store of a share's files. It checks no rights: they were checked before. */
export type Store = Pick<
  Files,
  "read" | "list" | "versions" | "version" | "write" | "append" | "remove" | "donePaths" | "plan"
> & {
  /** Where a file, or a folder with all that is in it, can be given another path as it is. Once for a key; false where there is none. */
  readonly rename?: (from: string, to: string, key: string) => Promise<boolean>;
  /** Number of the files that `remove` has removed with this key, where it is not the number of paths that were listed. */
  readonly removedFiles?: (key: string) => Promise<number | undefined>;
};
