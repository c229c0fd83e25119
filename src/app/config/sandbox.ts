import { z } from "zod";
import {
  fillableMegabytes,
  reservedProcesses,
  runnerMegabytes,
  type SandboxLimits,
} from "../../adapters/sandbox/limits.ts";
import type { SandboxSettings } from "../../adapters/sandbox/open-host.ts";
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

/** Section `sandbox` of config.yaml. */
export const sandboxSection = section({
  kind: z
    .enum(kinds, `one of ${kinds.join(", ")}`)
    .default("podman")
    .describe(
      "`podman`: each conversation in which commands are run has a container of its own. `off`: there are none. Without Podman everything else works.",
    ),
  podman: filled("a program").default("podman").describe("Of `podman`: the program, by its name or path."),
  connection: filled("a name")
    .optional()
    .describe(
      "Of `podman`: one of its connections to other machines (`podman system connection list`). Without it: this machine.",
    ),
  seccomp: z
    .string("an absolute path")
    .startsWith("/", "an absolute path")
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
  runningMost: whole(1, 10_000)
    .default(20)
    .describe(
      "Sandboxes that run at the same time. When there are so many, the one that was not used for longest is stopped, if that is a minute at least.",
    ),
  network: z
    .array(z.string().trim().toLowerCase().refine(isReachEntry, reachEntries), reachEntries)
    .default([])
    .describe(
      "Hosts to which programs in sandboxes may connect, by HTTP and HTTPS: names such as `example.org`, `.example.org` for all below it, and the groups `npm`, `pypi` and `github`. Whatever is in a sandbox can be sent there. Without it there is no network.",
    ),
  limits: limitsSection.prefault({}).describe("Limits of one sandbox."),
}).superRefine(({ connection, seccomp }, context) => {
  if (connection === undefined || seccomp !== undefined) return;
  const message = "the path of seccomp.json on the machine of the connection";
  context.addIssue({ code: "custom", path: ["seccomp"], message });
});

/** Settings as the section means them. */
export function sandboxSettings(read: z.output<typeof sandboxSection>): SandboxSettings {
  const { kind, podman, connection, seccomp, image, firstUid, idleSeconds, limits, network, runningMost } = read;
  return {
    engine: kind === "off" ? undefined : { kind, podman, connection, seccomp },
    image,
    firstUid,
    idleSeconds,
    runningMost,
    network,
    limits: withDisk(limits),
  };
}

const withDisk = ({ diskMegabytes, ...others }: z.output<typeof limitsSection>): SandboxLimits => ({
  ...others,
  diskMegabytes,
});
