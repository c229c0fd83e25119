import { mkdir, readlink, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { commandLine } from "./program.ts";

/**
 * Does the work while no other demo of this user is being started or ended: ports are bound seconds after they were
 * chosen, and what runs already is known only when it runs. What a process that died left behind counts for nothing.
 * @param tell hears of whom it waits for
 */
export const oneAtATime = async (dir: string, tell: (line: string) => void, work: () => Promise<void>) => {
  await mkdir(dir, { recursive: true }).catch((error: unknown) => {
    throw new UserError(`${dir} cannot be made (${messageOf(error)}). Let XDG_CACHE_HOME name a folder that can.`);
  });
  const lock = join(dir, "demo.lock");
  for (let told = false; !(await place(lock)); ) {
    const holder = await readlink(lock).catch(() => "");
    if (holder === "") continue;
    if ((await commandLine(Number(holder))).includes("main.ts demo")) {
      if (!told) tell(`waiting for process ${holder}, which starts or ends a demo ...`);
      told = true;
      await systemClock.sleep(100);
    } else {
      await rm(lock, { force: true });
    }
  }
  try {
    await work();
  } finally {
    await rm(lock, { force: true });
  }
};

/** A link comes into being with its content, all at once; false where there is one. */
const place = (lock: string): Promise<boolean> =>
  symlink(String(process.pid), lock).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    },
  );
