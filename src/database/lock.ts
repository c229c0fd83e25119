import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf, UserError } from "../lib/errors.ts";

/**
 * Takes the directory for this process; returns how to give it back. A lock whose process is gone is taken over:
 * `kill -9` leaves one behind. Throws a `UserError` that names the process which holds it.
 */
export async function lockDirectory(dir: string): Promise<() => Promise<void>> {
  const file = `${dir}/clevernet.pid`;
  const mine = `${process.pid} ${(await lifeOf(process.pid)).started}`;
  for (;;) {
    if (await place(file, mine)) return () => rm(file, { force: true });
    const found = await readFile(file, "utf8").catch(() => "");
    const [pid = "", started = ""] = found.split(" ");
    if (await isHeld(Number(pid), started)) {
      throw new UserError(
        `database.dir: ${dir} is in use by process ${pid}. Stop that process first, or give this one a directory of its own.`,
      );
    }
    await removeStale(file, found);
  }
}

/** The process that holds the directory; undefined where none does. */
export async function lockHolder(dir: string): Promise<number | undefined> {
  const [pid = "", started = ""] = (await readFile(`${dir}/clevernet.pid`, "utf8").catch(() => "")).split(" ");
  return (await isHeld(Number(pid), started)) ? Number(pid) : undefined;
}

/** Puts the file there with its content at once, so that nobody reads half a lock; false where there is one. */
async function place(file: string, content: string): Promise<boolean> {
  const draft = `${file}.${process.pid}.new`;
  await writeFile(draft, content).catch((error: unknown) => {
    throw new UserError(
      `database.dir: nothing can be written into ${dirname(file)} (${messageOf(error)}). It must belong to the user that ` +
        "runs Clevernet, and have room.",
    );
  });
  try {
    await link(draft, file);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Moves the lock away, and back where somebody else took it in the meantime. */
async function removeStale(file: string, stale: string): Promise<void> {
  const aside = `${file}.${process.pid}`;
  await rename(file, aside).catch(() => {});
  const moved = await readFile(aside, "utf8").catch(() => stale);
  if (moved !== stale) await rename(aside, file);
  else await rm(aside, { force: true });
}

function exists(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** State and start time as the system tells them, which no later process with the same id shares; empty without /proc. */
async function lifeOf(pid: number): Promise<{ readonly state: string; readonly started: string }> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", started: fields[19] ?? "" };
}

/** Whether the process that wrote the lock still runs. One that was killed and not yet buried does not. */
async function isHeld(pid: number, started: string): Promise<boolean> {
  if (!exists(pid)) return false;
  const life = await lifeOf(pid);
  return life.state !== "Z" && life.state !== "X" && life.started === started;
}
