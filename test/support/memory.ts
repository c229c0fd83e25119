import { readFile, writeFile } from "node:fs/promises";

const megabytes = async (pid: number, field: "VmHWM" | "VmRSS"): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
};

/** @returns how many megabytes a process of this machine takes at the most above what it takes now, while the work is done */
export async function growth(pid: number, work: () => Promise<unknown>): Promise<number> {
  await writeFile(`/proc/${pid}/clear_refs`, "5");
  const before = await megabytes(pid, "VmRSS");
  await work();
  return (await megabytes(pid, "VmHWM")) - before;
}
