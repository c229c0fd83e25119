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
  let wasTold = false;
  await holding(join(dir, "demo.lock"), work, (holder) => {
    if (!wasTold) tell(`waiting for process ${holder}, which starts or ends a demo ...`);
    wasTold = true;
  });
};

/** Does the work while this process holds the lock. `onWait` hears which process holds it, again and again. */
const holding = async (lock: string, work: () => Promise<void>, onWait: (holder: string) => void): Promise<void> => {
  while (!(await place(lock))) {
    const holder = await holderOf(lock);
    if (holder === undefined) continue;
    if (await isDemo(holder)) {
      onWait(holder);
      await systemClock.sleep(100);
    } else {
      await removeStale(lock, holder);
    }
  }
  try {
    await work();
  } finally {
    await rm(lock, { force: true });
  }
};

/**
 * Removes the lock of a process that died. Only who holds a second lock may, and looks again: otherwise one could remove
 * the lock that another has just put in its place.
 */
const removeStale = (lock: string, dead: string): Promise<void> =>
  holding(
    `${lock}.${dead}`,
    async () => {
      if ((await holderOf(lock)) === dead && !(await isDemo(dead))) await rm(lock, { force: true });
    },
    () => {},
  );

/** A link comes into being with its content, all at once; false where there is one. */
const place = (lock: string): Promise<boolean> =>
  symlink(String(process.pid), lock).then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
      throw error;
    },
  );

const holderOf = (lock: string): Promise<string | undefined> => readlink(lock).catch(() => undefined);

const isDemo = async (pid: string): Promise<boolean> => (await commandLine(Number(pid))).includes("main.ts demo");
