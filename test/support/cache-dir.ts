import { homedir } from "node:os";
import { join } from "node:path";

/** Keeps what tests fetched, outside the checkout: made again when absent. */
export const cacheDir = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "clevernet-testbed");
