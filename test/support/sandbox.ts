import { readFile } from "node:fs/promises";
import { execa } from "execa";
import { afterAll, beforeAll, describe, inject } from "vitest";
import type { SandboxHost, SandboxSpec } from "../../src/adapters/sandbox/host.ts";
import type { SandboxLimits } from "../../src/adapters/sandbox/limits.ts";
import { Runner } from "../../src/adapters/sandbox/runner.ts";
import type { CommandEnd } from "../../src/adapters/sandbox/runner-words.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { secret } from "../../src/base/lib/ids.ts";
import { eventually } from "./poll.ts";
import { localHost } from "./sandbox-host.ts";
import { markLabel } from "./sandbox-mark.ts";

export const firstUid = 1_000_000;
const limits: SandboxLimits = {
  memoryMegabytes: 1_024,
  cpus: 1,
  processes: 256,
  tmpMegabytes: 256,
  sharedMegabytes: 64,
  fileMegabytes: 2_048,
  diskMegabytes: undefined,
  commandSeconds: 120,
};

/** Tests that need Podman; skipped where it cannot be had, for the reason that the run says. */
export const describeSandbox = (name: string, tests: () => void): void => {
  const sandbox = inject("sandbox");
  describe.skipIf("missing" in sandbox)("missing" in sandbox ? `${name} (skipped: no Podman)` : name, tests);
};

/** A sandbox of its own; whoever makes it removes it. */
export const testSpec = (changed: Partial<SandboxLimits> = {}, label: string = secret(4)): SandboxSpec => {
  const sandbox = inject("sandbox");
  if ("missing" in sandbox) throw new Error(sandbox.missing);
  return {
    name: `clevernet-test-${secret(5)}`,
    labels: { [markLabel]: sandbox.mark, "clevernet.group": label },
    image: sandbox.tools,
    firstUid,
    limits: { ...limits, ...changed },
  };
};

export interface ShellResult extends CommandEnd {
  readonly id: string;
  readonly stdout: string;
  readonly stderr: string;
  /** Offset of the first byte that came. */
  readonly from: number;
  readonly ms: number;
}

export interface ShellOptions {
  readonly id?: string;
  readonly seconds?: number | null;
  /** Keeps the command, to be looked at again. */
  readonly isKept?: boolean;
  /** Nothing of its output is dropped: it waits for us. */
  readonly isWhole?: boolean;
}

/** A running sandbox, seen from inside by its runner and from outside by the machine. */
export class Box {
  readonly host: SandboxHost;
  readonly id: string;
  readonly runner: Runner;
  boot = "";

  private constructor(host: SandboxHost, id: string) {
    this.host = host;
    this.id = id;
    this.runner = this.connect();
  }

  static async start(spec: SandboxSpec, host: SandboxHost = localHost()): Promise<Box> {
    const id = await host.create(spec);
    await host.start(id);
    return await Box.attach(host, id);
  }

  /** One that runs already. */
  static async attach(host: SandboxHost, id: string): Promise<Box> {
    const box = new Box(host, id);
    box.boot = await box.runner.boot();
    return box;
  }

  /** Another client of the same runner. */
  connect(): Runner {
    return new Runner({ connect: () => this.host.connect(this.id), clock: systemClock });
  }

  /** Runs a line of Bash. */
  async sh(
    text: string,
    { id = `t-${secret(6)}`, seconds = 20, isKept = false, isWhole = false }: ShellOptions = {},
  ): Promise<ShellResult> {
    const begin = performance.now();
    const output = this.runner.run({ id, boot: this.boot, argv: ["bash", "-c", text], seconds, isWhole });
    const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    let from: number | undefined;
    for (;;) {
      const { value, done } = await output.next();
      if (!done) {
        from ??= value.at;
        chunks[value.stream].push(value.data);
        continue;
      }
      const ms = performance.now() - begin;
      if (!isKept) {
        await this.runner.kill(id);
        await eventually(() => this.runner.forget(id).then(() => true), { what: `the end of ${id}` });
      }
      const [stdout, stderr] = [chunks.stdout, chunks.stderr].map((parts) => Buffer.concat(parts).toString());
      return { ...value, id, stdout: stdout ?? "", stderr: stderr ?? "", from: from ?? 0, ms };
    }
  }

  /** True if the runner still is the one that was started, and runs commands. */
  async isWell(): Promise<boolean> {
    return (
      (await this.sh("echo well", { seconds: 10 })).stdout === "well\n" && (await this.runner.boot()) === this.boot
    );
  }

  /** Process id of the sandbox's first process, on the machine. */
  async pid(): Promise<number> {
    return Number((await execa("podman", ["inspect", "--format", "{{.State.Pid}}", this.id])).stdout);
  }

  async isRunning(): Promise<boolean> {
    return (await execa("podman", ["inspect", "--format", "{{.State.Running}}", this.id])).stdout === "true";
  }

  /** Folder of the sandbox's control group, for this controller. */
  async cgroup(controller: string): Promise<string> {
    const lines = (await readFile(`/proc/${await this.pid()}/cgroup`, "utf8")).trim().split("\n");
    for (const line of lines) {
      const [, names = "", path] = line.split(":");
      if (names.split(",").includes(controller)) return `/sys/fs/cgroup/${controller}${path}`;
    }
    return `/sys/fs/cgroup${lines[0]?.split(":")[2]}`;
  }

  /** First of these files that the control group has. */
  async figure(controller: string, ...names: string[]): Promise<string> {
    const folder = await this.cgroup(controller);
    for (const name of names) {
      const text = await readFile(`${folder}/${name}`, "utf8").catch(() => undefined);
      if (text !== undefined) return text.trim();
    }
    throw new Error(`${folder} has none of ${names.join(", ")}`);
  }

  /** Processes of commands, as the machine sees them: not the runner's, and not its supervisors'. */
  async commandPids(): Promise<number[]> {
    return await this.pidsOf(firstUid + 1_000);
  }

  /** Processes of a user of the machine, in the sandbox. */
  async pidsOf(uid: number): Promise<number[]> {
    const pids = (await this.figure("pids", "cgroup.procs")).split("\n").filter(Boolean).map(Number);
    const owners = await Promise.all(
      pids.map(async (pid) => {
        const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
        return Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1);
      }),
    );
    return pids.filter((_, index) => owners[index] === uid);
  }

  async remove(): Promise<void> {
    await this.runner.close();
    await this.host.remove(this.id);
  }
}

/** One sandbox for all tests of a group; `hasBrowser`: of the image that has one. */
export function sharedBox(changed: Partial<SandboxLimits> = {}, hasBrowser = false): () => Box {
  let box: Box | undefined;
  beforeAll(async () => {
    const spec = testSpec(changed);
    const sandbox = inject("sandbox");
    box = await Box.start(hasBrowser && "browser" in sandbox ? { ...spec, image: sandbox.browser } : spec);
  });
  afterAll(async () => {
    await box?.remove();
  });
  return () => {
    if (!box) throw new Error("the sandbox is there once the tests have begun");
    return box;
  };
}
