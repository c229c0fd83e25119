import { link, readFile, rm, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { systemClock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";

/**
 * Takes the directory for this process; returns how to give it back. A lock whose process is gone is taken over:
 * `kill -9` leaves one behind. Throws a `UserError` that names the process which holds it.
 */
export async function lockDirectory(dir: string): Promise<() => Promise<void>> {
  const file = `${dir}/clevernet.pid`;
  const mine = `${process.pid} ${(await lifeOf(process.pid)).started}`;
  for (;;) {
    if (await place(file, mine)) return () => rm(file, { force: true });
    const found = await readIfThere(file);
    // Given back, or removed by another, since: a lock that is not there may be somebody's the next moment.
    if (found === undefined) continue;
    const [pid = "", started = ""] = found.split(" ");
    if (await isHeld(Number(pid), started)) {
      throw new UserError(
        `database.dir: ${dir} is in use by process ${pid}. Stop that process first, or give this one a directory of its own.`,
      );
    }
    await removeStale(file, found, mine);
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

/**
 * Removes the lock of a process that died. Only who holds the second file may: without it one could remove the lock
 * that another has just put in its place.
 */
async function removeStale(file: string, stale: string, mine: string): Promise<void> {
  const permit = `${file}.removing`;
  if (await place(permit, mine)) {
    if ((await readIfThere(file)) === stale) await rm(file, { force: true });
    return rm(permit, { force: true });
  }
  const found = await readIfThere(permit);
  const [pid = "", started = ""] = (found ?? "").split(" ");
  if (found === undefined || (await isHeld(Number(pid), started)) || (await readIfThere(permit)) !== found) {
    return systemClock.sleep(10);
  }
  throw new UserError(
    `database.dir: a process died while it took the directory over. Delete ${permit} and start again.`,
  );
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
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

/** True if the process that wrote the lock still runs. A process that was killed and not yet buried does not. */
async function isHeld(pid: number, started: string): Promise<boolean> {
  if (!exists(pid)) return false;
  const life = await lifeOf(pid);
  return life.state !== "Z" && life.state !== "X" && life.started === started;
}
