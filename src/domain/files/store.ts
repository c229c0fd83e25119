import type { Files } from "../tables/files.ts";

/** Where the files of a share are. What is asked of it has been allowed. */
export type Store = Pick<Files, "read" | "list" | "versions" | "version" | "write" | "remove" | "donePaths" | "plan">;
