import { mkdir, open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { secret } from "../../base/lib/ids.ts";

/** Archives of workspaces in a folder, one for each sandbox. */
export class BackupStore {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Puts an archive in the place of an earlier one, when all of it has come. */
  async write(name: string, pieces: AsyncIterable<Buffer>): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = `${this.#pathOf(name)}.${secret(4)}.part`;
    try {
      const file = await open(path, "w", 0o600);
      try {
        for await (const piece of pieces) await file.appendFile(piece);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(path, this.#pathOf(name));
    } catch (error) {
      await rm(path, { force: true });
      throw error;
    }
  }

  read(name: string): Promise<Buffer> {
    return readFile(this.#pathOf(name));
  }

  async remove(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
  }

  #pathOf(name: string): string {
    return join(this.#folder, `${name}.tar.gz`);
  }
}
