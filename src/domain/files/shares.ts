import type { Database } from "../../adapters/database/connection.ts";
import { Agents } from "../tables/agents.ts";
import { FileAccess } from "../tables/file-access.ts";
import { Files } from "../tables/files.ts";
import { Access } from "./access.ts";
import type { FileSystemParts } from "./file-system.ts";
import { type Shipped, SystemShare } from "./shipped.ts";

const megabyte = 1 << 20;

export interface ShareOptions {
  readonly shipped: Shipped;
  /** Start of the program, as the date of all that is shipped. */
  readonly since: Date;
  /** Limit for all files of an agent, a user or a room together. */
  readonly quotaMegabytes: number;
  readonly check: FileSystemParts["check"];
}

/** The shares of a bridge; `sandbox:` is there once something mounts it. */
export function openShares(
  database: Database,
  { shipped, since, quotaMegabytes, check }: ShareOptions,
): FileSystemParts {
  const files = new Files(database);
  return {
    access: new Access(new FileAccess(database), new Agents(database)),
    stores: { agents: files, users: files, rooms: files, system: new SystemShare(files, shipped, since) },
    limits: { file: 16 * megabyte, root: quotaMegabytes * megabyte },
    check,
    forgetOld: () => files.forgetOld(quotaMegabytes * megabyte),
  };
}
