import { join } from "node:path";
import type { Duplex } from "node:stream";
import { z } from "zod";
import type { Clock } from "../../base/lib/clock.ts";
import { digest } from "../../base/lib/ids.ts";
import {
  HostError,
  type HostFinding,
  type SandboxHost,
  type SandboxSpec,
  type SandboxState,
  type WorkspaceSize,
} from "./host.ts";
import { Podman, type PodmanAnswer, remedyFor } from "./podman.ts";
import { connectArguments, createArguments, measureArguments, volumeOf } from "./podman-arguments.ts";
import { checkPodman } from "./podman-check.ts";

export interface PodmanOptions {
  /** The program: a name or a path. */
  readonly podman: string;
  /** Name of one of Podman's connections (`podman system connection list`); without it, this machine. */
  readonly connection?: string | undefined;
  /** Path of the seccomp profile on the machine that runs the sandboxes; default: ours, on this machine. */
  readonly seccomp?: string | undefined;
  readonly clock: Clock;
}

export const seccompProfile = join(import.meta.dirname, "seccomp.json");
const attempts = 5;
/** A list takes a moment: a host that has none within this time does not answer. */
const listMs = 30_000;
const specLabel = "clevernet.spec";

const states = z.array(
  z.object({
    Names: z.array(z.string()),
    Labels: z.record(z.string(), z.string()).nullable(),
    State: z.string(),
  }),
);

/** Sandboxes as containers of Podman 4.3 or newer, on this machine or another. */
export class PodmanHost implements SandboxHost {
  readonly #podman: Podman;
  readonly #seccomp: string;
  readonly #clock: Clock;

  constructor({ podman, connection, seccomp = seccompProfile, clock }: PodmanOptions) {
    this.#podman = new Podman(podman, connection);
    this.#seccomp = seccomp;
    this.#clock = clock;
  }

  check(spec: SandboxSpec): AsyncIterable<HostFinding> {
    return checkPodman(this, { spec, podman: this.#podman, clock: this.#clock });
  }

  async create(spec: SandboxSpec): Promise<string> {
    const { name } = spec;
    const [image, present] = await Promise.all([
      this.#podman.run(["image", "inspect", "--format", "{{.Id}}", spec.image]),
      this.#podman.run(["inspect", "--format", `{{index .Config.Labels "${specLabel}"}}`, name]),
    ]);
    if (image.code !== 0)
      throw this.#errorOf(image, `there is no image ${spec.image}`, "Make it: npm run clevernet -- sandbox build");
    const fingerprint = digest(image.out, ...createArguments(spec, this.#seccomp));
    if (present.code === 0 && present.out === fingerprint) return name;
    if (present.code === 0) await this.#removeContainer(name);
    // Podman makes a missing volume by itself, and without a limit: it must be there before.
    await this.#ensureVolume(spec);
    const labelled = { ...spec, labels: { ...spec.labels, [specLabel]: fingerprint } };
    const created = await this.#podman.run(["create", ...createArguments(labelled, this.#seccomp)]);
    if (created.code !== 0 && !(await this.#has("container", name)))
      throw this.#errorOf(created, `the sandbox ${name} cannot be made`);
    return name;
  }

  async find({ name, value }: { readonly name: string; readonly value: string }): Promise<readonly SandboxState[]> {
    const asked = ["ps", "--all", "--filter", `label=${name}=${value}`, "--format", "json"];
    const listed = await this.#podman.run(asked, listMs);
    if (listed.code !== 0) throw this.#errorOf(listed, "the sandboxes cannot be listed");
    return states.parse(JSON.parse(listed.out || "[]")).map(({ Names, Labels, State }) => ({
      id: Names[0] ?? "",
      labels: Labels ?? {},
      isRunning: State === "running",
    }));
  }

  async start(id: string): Promise<void> {
    const started = await this.#podman.run(["start", id]);
    if (started.code !== 0) throw this.#errorOf(started, `the sandbox ${id} cannot be started`);
  }

  async stop(id: string): Promise<void> {
    const stopped = await this.#podman.run(["stop", "--ignore", "--time", "1", id]);
    if (stopped.code !== 0) throw this.#errorOf(stopped, `the sandbox ${id} cannot be stopped`);
  }

  async remove(id: string): Promise<void> {
    await this.#removeContainer(id);
    const volume = volumeOf(id);
    const removed = await this.#podman.run(["volume", "rm", "--force", volume]);
    if (removed.code !== 0 && (await this.#has("volume", volume)))
      throw this.#errorOf(removed, `the workspace of ${id} cannot be removed`);
  }

  async measure(id: string): Promise<WorkspaceSize | undefined> {
    const image = await this.#podman.run(["inspect", "--format", "{{.Image}}", id]);
    if (image.code !== 0) return undefined;
    const measured = await this.#podman.run(["run", ...measureArguments(id, image.out, this.#seccomp)]);
    const [bytes, files] = measured.out.split("\n").map((line) => /^\d+/.exec(line)?.[0]);
    // It complains of what is removed meanwhile, and counts the rest.
    return bytes === undefined || files === undefined ? undefined : { bytes: Number(bytes), files: Number(files) };
  }

  async connect(id: string): Promise<Duplex> {
    return this.#podman.stream(connectArguments(id));
  }

  async #ensureVolume({ name, labels, limits: { diskMegabytes } }: SandboxSpec): Promise<void> {
    const volume = volumeOf(name);
    if (await this.#has("volume", volume)) return;
    const made = await this.#podman.run([
      ...["volume", "create"],
      ...Object.entries(labels).flatMap(([label, value]) => ["--label", `${label}=${value}`]),
      ...(diskMegabytes === undefined ? [] : ["--opt", `o=size=${diskMegabytes}m`]),
      volume,
    ]);
    if (made.code === 0 || (diskMegabytes === undefined && (await this.#has("volume", volume)))) return;
    const remedy =
      "Take sandbox.limits.diskMegabytes away, or put Podman's volumes on XFS that is mounted with prjquota";
    throw this.#errorOf(
      made,
      `the workspace of ${name} cannot be made`,
      diskMegabytes === undefined ? undefined : remedy,
    );
  }

  async #removeContainer(id: string): Promise<void> {
    // Podman may say "busy" of one that is gone.
    for (let attempt = 1; ; attempt++) {
      const removed = await this.#podman.run(["rm", "--force", "--time", "0", id]);
      if (!(await this.#has("container", id))) return;
      if (attempt === attempts) throw this.#errorOf(removed, `the sandbox ${id} cannot be removed`);
      await this.#clock.sleep(attempt * 100);
    }
  }

  /** @throws HostError where it cannot be known */
  async #has(kind: "container" | "volume", name: string): Promise<boolean> {
    const answer = await this.#podman.run([kind, "exists", name]);
    if (answer.code === 0 || answer.code === 1) return answer.code === 0;
    throw this.#errorOf(answer, `nothing is known of ${name}`);
  }

  #errorOf({ says }: PodmanAnswer, what: string, remedy?: string): HostError {
    return new HostError(`${what}: ${says}`, remedyFor(says) ?? remedy);
  }
}
