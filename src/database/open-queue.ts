import type { Log } from "../lib/log.ts";
import type { Database } from "./connection.ts";
import { LocalQueue } from "./local-queue.ts";
import type { Queue } from "./queue.ts";

/** Between several processes jobs need a place where all see them; the embedded database has one process only. */
export const openQueue = async (database: Database, log: Log): Promise<Queue> => {
  if ("dir" in database.location) return new LocalQueue(log);
  const { SharedQueue } = await import("./shared-queue.ts");
  return new SharedQueue(database.location.url, log);
};
