import type { Files } from "../tables/files.ts";

/** Store of a share's files. It checks no rights: they were checked before. */
export type Store = Pick<Files, "read" | "list" | "versions" | "version" | "write" | "remove" | "donePaths" | "plan">;
