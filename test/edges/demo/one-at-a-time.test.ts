import { lstat, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { oneAtATime } from "../../../src/edges/demo/one-at-a-time.ts";

let dir: string;
let lock: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "clevernet-turn-"));
  lock = join(dir, "demo.lock");
});
afterEach(() => rm(dir, { recursive: true }));

const silent = () => {};

describe("one demo at a time", () => {
  it("is none of a process that is gone, or has become another", async () => {
    for (const holder of ["999999999", String(process.ppid)]) {
      await symlink(holder, lock);
      let done = false;
      await oneAtATime(dir, silent, async () => {
        done = true;
      });
      expect(done).toBe(true);
    }
  });

  it("says which folder it needs", async () => {
    await writeFile(join(dir, "file"), "");
    await expect(oneAtATime(join(dir, "file", "cache"), silent, async () => {})).rejects.toThrow(UserError);
  });

  it("is given back by work that fails", async () => {
    await expect(oneAtATime(dir, silent, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(lstat(lock)).rejects.toThrow("ENOENT");
  });
});
