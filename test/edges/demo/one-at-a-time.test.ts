import { once } from "node:events";
import { lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { execa } from "execa";
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
const gone = "999999999";

/** A process that is known as a demo. */
const startStarter = () => {
  const child = execa(
    process.execPath,
    [new URL("../../support/demo-starter.ts", import.meta.url).pathname, "main.ts", "demo"],
    {
      stdin: "pipe",
      stdout: "pipe",
      buffer: false,
    },
  );
  const lines = createInterface({ input: child.stdout });
  return {
    async takeTurn(folder: string): Promise<unknown> {
      child.stdin.write(`${folder}\n`);
      const [line] = await once(lines, "line");
      return line;
    },
    async end() {
      child.stdin.end();
      await child;
    },
  };
};

describe("one demo at a time", () => {
  it("is none of a process that is gone, or has become another", async () => {
    for (const holder of [gone, String(process.ppid)]) {
      await symlink(holder, lock);
      let isDone = false;
      await oneAtATime(dir, silent, async () => {
        isDone = true;
      });
      expect(isDone).toBe(true);
    }
  });

  it("is started also where another start died while it took the lock of a dead one away", async () => {
    await symlink(gone, lock);
    await symlink(gone, `${lock}.${gone}`);
    let isDone = false;
    await oneAtATime(dir, silent, async () => {
      isDone = true;
    });
    expect(isDone).toBe(true);
    expect(await readdir(dir)).toEqual([]);
  });

  it("lets four starts in one after the other, also where they find what a dead one has left", async () => {
    const starters = [1, 2, 3, 4].map(startStarter);
    try {
      for (let round = 0; round < 9; round++) {
        const folder = join(dir, `${round}`);
        await mkdir(folder);
        if (round % 3 > 0) await symlink(gone, join(folder, "demo.lock"));
        if (round % 3 > 1) await symlink(gone, join(folder, `demo.lock.${gone}`));
        const alone = await Promise.all(starters.map((starter) => starter.takeTurn(folder)));
        expect(alone).toEqual(["true", "true", "true", "true"]);
        expect(await readdir(folder)).toEqual([]);
      }
    } finally {
      await Promise.all(starters.map((starter) => starter.end()));
    }
  }, 120_000);

  it("says which folder it needs", async () => {
    await writeFile(join(dir, "file"), "");
    await expect(oneAtATime(join(dir, "file", "cache"), silent, async () => {})).rejects.toThrow(UserError);
  });

  it("is given back by work that fails", async () => {
    await expect(oneAtATime(dir, silent, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(lstat(lock)).rejects.toThrow("ENOENT");
  });
});
