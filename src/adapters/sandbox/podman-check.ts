import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import { HostError, type HostFinding, type SandboxHost, type SandboxSpec } from "./host.ts";
import { type Podman, remedyFor } from "./podman.ts";
import { judgeProbe, probeSchema } from "./probe.ts";
import { Runner } from "./runner.ts";

export interface PodmanCheck {
  readonly spec: SandboxSpec;
  readonly podman: Podman;
  readonly clock: Clock;
}

const oldest = [4, 3] as const;
const needed = ["memory", "pids", "cpu"];
const probeSeconds = 60;

const infoSchema = z.object({
  host: z.object({
    cgroupVersion: z.string(),
    cgroupControllers: z.array(z.string()).nullable().default([]),
    security: z.object({ rootless: z.boolean(), seccompEnabled: z.boolean() }),
  }),
  version: z.object({ Version: z.string() }),
});

const ok = (point: string, says: string): HostFinding => ({ point, state: "ok", says });
const missing = (point: string, says: string, remedy: string): HostFinding => ({
  point,
  state: "missing",
  says,
  remedy,
});

/** See `SandboxHost.check`. */
export async function* checkPodman(
  host: SandboxHost,
  { spec, podman, clock }: PodmanCheck,
): AsyncGenerator<HostFinding> {
  const info = await podman.run(["info", "--format", "json"]);
  if (info.code !== 0) {
    yield missing(
      "podman",
      `it does not answer: ${info.says}.`,
      remedyFor(info.says) ?? "Run podman info, and mend it.",
    );
    return;
  }
  const told = infoSchema.safeParse(JSON.parse(info.out));
  if (!told.success) {
    yield missing("podman", "its information cannot be read.", "Install Podman 4.3 or newer.");
    return;
  }
  const { version, host: machine } = told.data;
  const [major = 0, minor = 0] = version.Version.split(".").map(Number);
  if (major < oldest[0] || (major === oldest[0] && minor < oldest[1])) {
    yield missing("podman", `it is version ${version.Version}.`, `Install Podman ${oldest.join(".")} or newer.`);
    return;
  }
  const { rootless, seccompEnabled } = machine.security;
  yield ok("podman", `version ${version.Version}, ${rootless ? "rootless" : "as root"}.`);

  const controllers = machine.cgroupControllers ?? [];
  const absent = needed.filter((name) => !controllers.includes(name));
  if (rootless && machine.cgroupVersion === "v1") {
    const remedy = "Run Podman as root, or boot with cgroup v2 (systemd.unified_cgroup_hierarchy=1).";
    yield missing("cgroups", "without root, version 1 has no limits for memory, processors and processes.", remedy);
    return;
  }
  if (absent.length > 0) {
    const remedy = "Delegate these controllers to the user (systemd: Delegate=yes), or run Podman as root.";
    yield missing("cgroups", `there is no limit for ${absent.join(", ")}.`, remedy);
    return;
  }
  yield ok("cgroups", `${machine.cgroupVersion}, with limits for ${needed.join(", ")}.`);
  if (!seccompEnabled) {
    yield missing("seccomp", "this machine cannot filter system calls.", "Use a kernel and a runtime with seccomp.");
    return;
  }
  const image = await podman.run(["image", "exists", spec.image]);
  if (image.code !== 0) {
    yield missing("image", `there is no ${spec.image}.`, "Make it: npm run clevernet -- sandbox build");
    return;
  }
  yield ok("image", `${spec.image} is there.`);
  yield* checkInside(host, spec, clock);
}

/** Starts a sandbox with these limits, looks at it from inside, and removes it. */
async function* checkInside(host: SandboxHost, spec: SandboxSpec, clock: Clock): AsyncGenerator<HostFinding> {
  const trial = { ...spec, name: `${spec.name}-check-${secret(4)}` };
  const runner = new Runner({ connect: () => host.connect(trial.name), clock, patienceMs: 10_000 });
  try {
    await host.start(await host.create(trial));
    const probe = await readFile(join(import.meta.dirname, "probe.py"), "utf8");
    let out = "";
    let said = "";
    const command = {
      id: "probe",
      boot: await runner.boot(),
      argv: ["/usr/bin/python3", "-c", probe],
      seconds: probeSeconds,
    } as const;
    for await (const { stream, data } of runner.run(command)) {
      if (stream === "stdout") out = (out + data.toString()).slice(0, 100_000);
      else said = (said + data.toString()).slice(-1_000);
    }
    const answer = probeSchema.safeParse(parsed(out));
    if (answer.success) yield* judgeProbe(answer.data, trial);
    else
      yield missing("inside", `the sandbox does not tell how it looks: ${said.trim() || out}`, "Build the image anew.");
  } catch (error) {
    const remedy = (error instanceof HostError && error.remedy) || "Mend what this says, then look again.";
    yield missing("inside", `a sandbox cannot be used: ${messageOf(error)}.`, remedy);
  } finally {
    await runner.close();
    await host.remove(trial.name).catch(() => {});
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
