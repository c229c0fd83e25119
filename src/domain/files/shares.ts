import type { Database } from "../../adapters/database/connection.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { Agents } from "../tables/agents.ts";
import { FileAccess } from "../tables/file-access.ts";
import { Files } from "../tables/files.ts";
import { Access } from "./access.ts";
import type { FileSystemParts } from "./file-reader.ts";
import { type SandboxFiles, SandboxShare } from "./sandbox-share.ts";
import { type Shipped, SystemShare } from "./shipped.ts";
import { UnwrittenShare, type UnwrittenText } from "./unwritten.ts";

const megabyte = 1 << 20;

export interface ShareOptions {
  readonly shipped: Shipped;
  /** Start of the program, as the date of all that is shipped. */
  readonly since: Date;
  /** Limit for all files of an agent, a user or a room together. */
  readonly quotaMegabytes: number;
  readonly check: FileSystemParts["check"];
  readonly unwritten: UnwrittenText;
  /** Files of a conversation's sandbox; undefined where there are no sandboxes. */
  readonly sandboxFiles?: ((conversation: Conversation) => SandboxFiles) | undefined;
}

/** The shares of a bridge. */
export function openShares(
  database: Database,
  { shipped, since, quotaMegabytes, check, unwritten, sandboxFiles }: ShareOptions,
): FileSystemParts {
  const files = new Files(database);
  const own = new UnwrittenShare(files, unwritten, since);
  return {
    access: new Access(new FileAccess(database), new Agents(database)),
    stores: { agents: own, users: files, rooms: own, system: new SystemShare(files, shipped, since) },
    sandboxes: sandboxFiles && ((conversation) => new SandboxShare(files, sandboxFiles(conversation))),
    limits: { file: 16 * megabyte, root: quotaMegabytes * megabyte },
    check,
    forgetOld: () => files.forgetOld(quotaMegabytes * megabyte),
  };
}
