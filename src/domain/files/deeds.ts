import { digest } from "../../base/lib/ids.ts";
import { type FilePath, formatPath, parsePath, type ShareName } from "./path.ts";
import type { Store } from "./store.ts";

/** Record of what one operation has done to files: it goes on where it was interrupted, and does nothing twice. */
export class Deeds {
  readonly #key: string;
  readonly #storeOf: (share: ShareName) => Store;

  constructor(key: string, storeOf: (share: ShareName) => Store) {
    this.#key = key;
    this.#storeOf = storeOf;
  }

  /** Names what the operation does to a file. */
  keyOf(file: FilePath): string {
    return digest(this.#key, formatPath(file));
  }

  /** Paths of the files that it has removed there. */
  async removedPaths(path: string): Promise<string[]> {
    const file = parsePath(path);
    const done = await this.#storeOf(file.share).donePaths(this.keyOf(file));
    return done.map((one) => formatPath({ share: file.share, path: one }));
  }

  /** Returns the plan that was made when the operation ran first. */
  async planOnce(share: ShareName, plan: () => Promise<string[]>): Promise<string[]> {
    const store = this.#storeOf(share);
    const key = digest(this.#key, "plan");
    const known = await store.donePaths(key);
    return known.length > 0 ? known : store.plan(key, await plan());
  }
}
