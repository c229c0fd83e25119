import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { PodmanHost } from "../../src/adapters/sandbox/podman-host.ts";
import { systemClock } from "../../src/base/lib/clock.ts";

/** Another host on this machine: Podman with storage of its own, which reads the images of the first one. */
export class SecondPodman {
  readonly host: PodmanHost;
  readonly #dir: string;

  private constructor(dir: string) {
    this.#dir = dir;
    this.host = new PodmanHost({ podman: join(dir, "podman"), clock: systemClock });
  }

  static async make(): Promise<SecondPodman> {
    const dir = await mkdtemp(join(tmpdir(), "clevernet-host-"));
    const { stdout: images } = await execa("podman", ["info", "--format", "{{.Store.GraphRoot}}"]);
    const script = [
      "#!/bin/sh",
      `if [ -e ${dir}/away ]; then echo "Error: unable to connect to Podman" >&2; exit 125; fi`,
      `exec podman --root ${dir}/root --runroot ${dir}/run --storage-driver overlay --storage-opt additionalimagestore=${images} "$@"`,
    ];
    await writeFile(join(dir, "podman"), `${script.join("\n")}\n`);
    await chmod(join(dir, "podman"), 0o755);
    return new SecondPodman(dir);
  }

  /** From now on it answers nobody; what runs there goes on. */
  async leave(): Promise<void> {
    await writeFile(join(this.#dir, "away"), "");
  }

  async comeBack(): Promise<void> {
    await rm(join(this.#dir, "away"), { force: true });
  }

  async remove(): Promise<void> {
    await this.comeBack();
    const program = join(this.#dir, "podman");
    const all = await execa(program, ["ps", "--all", "--quiet"]);
    for (const id of all.stdout.split("\n").filter(Boolean)) await execa(program, ["rm", "--force", "--time", "0", id]);
    await execa("umount", ["--recursive", join(this.#dir, "root/overlay")], { reject: false });
    await rm(this.#dir, { recursive: true, force: true });
  }
}
