import { resolve } from "node:path";
import { z } from "zod";
import {
  fillableMegabytes,
  reservedProcesses,
  runnerMegabytes,
  type SandboxLimits,
} from "../../adapters/sandbox/limits.ts";
import type { HostSettings, SandboxSettings } from "../../adapters/sandbox/open-host.ts";
import { section } from "../../base/lib/problems.ts";
import { isReachEntry, reachEntries } from "../../base/lib/reach-entry.ts";
import { filled } from "./values.ts";

const kinds = ["podman", "off"] as const;
const whole = (least: number, most: number) => {
  const expected = `a whole number from ${least} to ${most}`;
  return z.number(expected).int(expected).min(least, expected).max(most, expected);
};
const cpus = "a number of processors from 0.1 to 64, such as 0.5";
const leastProcesses = reservedProcesses + 16;

const limitsSection = section({
  memoryMegabytes: whole(256, 1_048_576).default(1_024).describe("Memory of one sandbox, without swap."),
  cpus: z
    .number(cpus)
    .min(0.1, cpus)
    .max(64, cpus)
    .default(1)
    .describe("Processors of one sandbox, also in parts: 0.5."),
  processes: whole(leastProcesses, 32_768)
    .default(256)
    .describe(
      `Processes and threads of one sandbox; ${reservedProcesses} of them are kept for its runner. A browser needs 80.`,
    ),
  tmpMegabytes: whole(1, 524_288).default(256).describe("Size of `/tmp`, which is in memory."),
  sharedMegabytes: whole(1, 524_288).default(64).describe("Size of `/dev/shm`, which is in memory."),
  fileMegabytes: whole(1, 1_048_576).default(2_048).describe("Size of one file."),
  diskMegabytes: whole(1, 1_048_576_000)
    .optional()
    .describe(
      "Size of all files in a workspace. Only where Podman keeps its volumes on XFS that is mounted with `prjquota`: elsewhere no sandbox can be made with it.",
    ),
  commandSeconds: whole(1, 86_400).default(120).describe("Time limit of a command that is given none."),
}).superRefine((limits, context) => {
  const needed = fillableMegabytes(withDisk(limits));
  if (needed <= limits.memoryMegabytes / 2) return;
  const sum = `${limits.tmpMegabytes} of tmpMegabytes, ${limits.sharedMegabytes} of sharedMegabytes and ${runnerMegabytes} of the runner`;
  const message = `at least ${2 * needed}: ${sum} are in memory too, and may take half of it at most`;
  context.addIssue({ code: "custom", path: ["memoryMegabytes"], message });
});

const diskSection = section({
  freeMegabytes: whole(0, 1_048_576_000)
    .default(1_024)
    .describe(
      "Room that stays on the disk of a host: when there is less, and what there is shrinks, the sandbox that has grown most is stopped.",
    ),
  freeFiles: whole(0, 1_000_000_000)
    .default(20_000)
    .describe("Files for which there stays room, on file systems that limit them."),
  workspaceMegabytes: whole(16, 1_048_576_000)
    .default(8_192)
    .describe("Size of all files of a sandbox: a larger one is stopped a few seconds later."),
  workspaceFiles: whole(1_000, 1_000_000_000).default(500_000).describe("Files, folders and links of a sandbox."),
});

const hostName = "a name of small letters, digits and hyphens";
const runningMost = whole(1, 10_000);
const connection = filled("a name");
const absolute = z.string("an absolute path").startsWith("/", "an absolute path");

const hostSection = section({
  podman: filled("a program").optional().describe("Program of this host, where it is another than `sandbox.podman`."),
  connection: connection
    .optional()
    .describe("One of Podman's connections (`podman system connection list`), over ssh. Without it: this machine."),
  seccomp: absolute
    .optional()
    .describe("With a connection: path on that machine to which you have copied `src/adapters/sandbox/seccomp.json`."),
  runningMost: runningMost.default(20).describe("Sandboxes that run there at the same time."),
}).superRefine(needsSeccomp);

const backupSection = section({
  folder: filled("a folder").describe(
    "Folder for the archives: one that all processes of the bridge share. Relative to this file.",
  ),
  maxMegabytes: whole(1, 4_096)
    .default(256)
    .describe("Size of the archive of one sandbox, compressed: files of one that needs more are not backed up."),
});

function needsSeccomp(
  { connection: remote, seccomp }: { readonly connection?: string | undefined; readonly seccomp?: string | undefined },
  context: z.RefinementCtx,
): void {
  if (remote === undefined || seccomp !== undefined) return;
  const message = "the path of seccomp.json on the machine of the connection";
  context.addIssue({ code: "custom", path: ["seccomp"], message });
}

/** Section `sandbox` of config.yaml. */
export const sandboxSection = section({
  kind: z
    .enum(kinds, `one of ${kinds.join(", ")}`)
    .default("podman")
    .describe(
      "`podman`: each conversation in which commands are run has a container of its own. `off`: there are none. Without Podman everything else works.",
    ),
  podman: filled("a program").default("podman").describe("Of `podman`: the program, by its name or path."),
  connection: connection
    .optional()
    .describe(
      "Of `podman`: one of its connections to other machines (`podman system connection list`). Without it: this machine.",
    ),
  seccomp: absolute
    .optional()
    .describe(
      "Of `podman` with a connection: path on that machine to which you have copied `src/adapters/sandbox/seccomp.json`.",
    ),
  image: filled("an image")
    .default("localhost/clevernet-sandbox:latest")
    .describe("Image of sandboxes: `clevernet sandbox build` makes it."),
  firstUid: whole(1, 4_000_000_000)
    .default(1_000_000)
    .describe(
      "First of the 65,536 user ids of the host that users of sandboxes are mapped to; nobody else may have them. Without root: of the user's own subordinate ids, where 1 is the first.",
    ),
  idleSeconds: whole(5, 604_800)
    .default(900)
    .describe(
      "A sandbox that nobody has used for so long is stopped: what runs in it ends, its files stay. It is started again with the next use.",
    ),
  hosts: z
    .record(
      z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/, `expected ${hostName}`),
      hostSection,
      "hosts by name, such as near: { connection: near, seccomp: /etc/clevernet/seccomp.json }",
    )
    .optional()
    .describe(
      "Several machines for sandboxes, instead of one. A conversation's sandbox is made on the one with most room, and stays there. The name `default` is that of the one machine without this setting.",
    ),
  backups: backupSection
    .optional()
    .describe(
      "Copies of the sandboxes' files: made when a sandbox is stopped, and every 15 minutes while it is used. From them a sandbox is made anew when its host does not answer for 5 minutes. Without it there are none.",
    ),
  disk: diskSection.prefault({}).describe("Room on the disks of hosts, which is watched while sandboxes run."),
  runningMost: runningMost
    .default(20)
    .describe(
      "Of the one machine: sandboxes that run at the same time. When there are so many, the one that was not used for longest is stopped, if that is a minute at least.",
    ),
  network: z
    .array(z.string().trim().toLowerCase().refine(isReachEntry, reachEntries), reachEntries)
    .default([])
    .describe(
      "Hosts to which programs in sandboxes may connect, by HTTP and HTTPS: names such as `example.org`, `.example.org` for all below it, and the groups `npm`, `pypi` and `github`. Whatever is in a sandbox can be sent there. Without it there is no network.",
    ),
  limits: limitsSection.prefault({}).describe("Limits of one sandbox."),
}).superRefine((read, context) => {
  needsSeccomp(read, context);
  if (!read.hosts) return;
  if (Object.keys(read.hosts).length === 0)
    context.addIssue({ code: "custom", path: ["hosts"], message: "one host at least" });
  if (read.connection === undefined) return;
  const message = "nothing beside sandbox.hosts: name it there";
  context.addIssue({ code: "custom", path: ["connection"], message });
});

/**
 * Settings as the section means them.
 * @param dir folder of the configuration
 */
export function sandboxSettings(read: z.output<typeof sandboxSection>, dir = "."): SandboxSettings {
  const { backups, image, firstUid, idleSeconds, limits, network, disk } = read;
  return {
    hosts: hostsOf(read),
    backups: backups && { ...backups, folder: resolve(dir, backups.folder) },
    image,
    firstUid,
    idleSeconds,
    network,
    limits: withDisk(limits),
    disk,
  };
}

function hostsOf(read: z.output<typeof sandboxSection>): HostSettings[] {
  const { kind, podman, connection: remote, seccomp } = read;
  if (kind === "off") return [];
  const only = { connection: remote, seccomp, runningMost: read.runningMost, podman };
  return Object.entries(read.hosts ?? { default: only }).map(([name, host]) => ({
    name,
    engine: { kind, podman: host.podman ?? podman, connection: host.connection, seccomp: host.seccomp },
    runningMost: host.runningMost,
  }));
}

const withDisk = ({ diskMegabytes, ...others }: z.output<typeof limitsSection>): SandboxLimits => ({
  ...others,
  diskMegabytes,
});
