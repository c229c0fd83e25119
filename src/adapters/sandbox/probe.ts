import { z } from "zod";
import type { HostFinding, SandboxSpec } from "./host.ts";

/** Answer of probe.py. */
export const probeSchema = z.object({
  uid: z.number(),
  capabilities: z.string(),
  noNewPrivileges: z.string(),
  seccomp: z.string(),
  mayMakeUser: z.boolean(),
  sockets: z.array(z.string()),
  writable: z.array(z.string()),
  interfaces: z.array(z.string()),
  proxies: z.array(z.string()),
  memory: z.number().nullable(),
  processes: z.number().nullable(),
  cpus: z.number().nullable(),
  tmp: z.number().nullable(),
  shared: z.number().nullable(),
  programs: z.record(z.string(), z.string().nullable()),
  chromium: z.string().nullable(),
});

export type Probe = z.output<typeof probeSchema>;

const megabyte = 1024 * 1024;

/** Judges how a sandbox looks from inside. */
export function* judgeProbe(probe: Probe, { image, limits }: SandboxSpec): Generator<HostFinding> {
  const judge = (point: string, faults: readonly (string | false)[], says: string, remedy: string): HostFinding => {
    const found = faults.filter((fault) => fault !== false);
    return found.length === 0
      ? { point, state: "ok", says: `${says}.` }
      : { point, state: "unsafe", says: `${found.join("; ")}.`, remedy };
  };
  yield judge(
    "privileges",
    [
      probe.uid !== 1000 && `commands run as user ${probe.uid}`,
      !/^0+$/.test(probe.capabilities) && `commands have the capabilities ${probe.capabilities}`,
      probe.noNewPrivileges !== "1" && "programs may gain privileges",
      probe.writable.length > 0 && `commands may write to ${probe.writable.join(", ")}`,
    ],
    "commands have none",
    "Use the image that clevernet sandbox build makes, and a runtime that honours --cap-drop and --read-only (runc, crun).",
  );
  yield judge(
    "system calls",
    [
      probe.seccomp !== "2" && "they are not filtered",
      probe.mayMakeUser && "commands may make user namespaces",
      probe.sockets.length > 0 && `commands may open sockets of ${probe.sockets.join(", ")}`,
    ],
    "they are filtered",
    "The profile seccomp.json is not in force: with a connection, copy it to that machine and set sandbox.seccomp to its path there.",
  );
  const memory = limits.memoryMegabytes * megabyte;
  yield judge(
    "limits",
    [
      probe.memory !== memory && `memory is ${probe.memory ?? "not limited"}, expected ${memory} bytes`,
      probe.processes !== limits.processes &&
        `processes: ${probe.processes ?? "no limit"}, expected ${limits.processes}`,
      (probe.cpus === null || Math.abs(probe.cpus - limits.cpus) > 0.01) &&
        `processors: ${probe.cpus ?? "no limit"}, expected ${limits.cpus}`,
      probe.tmp !== limits.tmpMegabytes && `/tmp has ${probe.tmp} MB, expected ${limits.tmpMegabytes}`,
      probe.shared !== limits.sharedMegabytes && `/dev/shm has ${probe.shared} MB, expected ${limits.sharedMegabytes}`,
    ],
    `${limits.memoryMegabytes} MB of memory, ${limits.cpus} processors, ${limits.processes} processes`,
    "Run Podman as root, or with cgroup v2 and the controllers memory, pids and cpu delegated to the user.",
  );
  const others = probe.interfaces.filter((name) => name !== "" && name !== "lo");
  yield judge(
    "network",
    [
      others.length > 0 && `there are the interfaces ${others.join(", ")}`,
      probe.proxies.length > 0 && `the machine's ${probe.proxies.join(", ")} came in`,
    ],
    "there is none",
    "Look at containers.conf: nothing there may add networks or environment variables to containers.",
  );
  const absent = Object.entries(probe.programs).filter(([, version]) => version === null);
  const present = Object.values(probe.programs).filter((version) => version !== null);
  if (absent.length > 0) {
    const says = `${absent.map(([name]) => name).join(", ")} cannot be run in ${image}.`;
    yield { point: "programs", state: "missing", says, remedy: "Make it anew: npm run clevernet -- sandbox build" };
  } else {
    const browser = probe.chromium === null ? "no browser: screenshots need the image without --tools" : "Chromium";
    yield { point: "programs", state: "ok", says: `${present.join(", ")}; ${browser}.` };
  }
}
