import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { freePort } from "../support/free-port.ts";
import { eventually } from "../support/poll.ts";

const sshd = process.env.SSHD ?? "/usr/sbin/sshd";

/**
 * Does something with this machine's Podman as it is reached over ssh, by the name of a connection. Undefined where there is no
 * sshd; `SSHD` may name one that is not installed.
 */
export async function withSshd<Result>(work: (connection: string) => Promise<Result>): Promise<Result | undefined> {
  if (!existsSync(sshd)) return undefined;
  const dir = await mkdtemp(join(tmpdir(), "clevernet-ssh-"));
  const port = await freePort();
  const before = process.env.CONTAINERS_CONF;
  const ended: (() => Promise<unknown>)[] = [];
  const start = (program: string, args: string[]): void => {
    const child = execa(program, args, { reject: false, stdio: "ignore" });
    ended.push(() => {
      child.kill("SIGKILL");
      return child;
    });
  };
  try {
    for (const name of ["host", "user"])
      await execa("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(dir, name)]);
    await writeFile(join(dir, "authorized"), await readFile(join(dir, "user.pub")));
    const config = [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${dir}/host`,
      `AuthorizedKeysFile ${dir}/authorized`,
      "StrictModes no",
      "PermitRootLogin prohibit-password",
      "PasswordAuthentication no",
      `PidFile ${dir}/pid`,
    ];
    await writeFile(join(dir, "sshd_config"), `${config.join("\n")}\n`);
    await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
    start(sshd, ["-D", "-e", "-f", join(dir, "sshd_config")]);
    start("podman", ["system", "service", "--time=0", `unix://${dir}/podman.sock`]);
    const machine = await readFile("/etc/containers/containers.conf", "utf8").catch(() => "");
    const uri = `ssh://${userInfo().username}@127.0.0.1:${port}${dir}/podman.sock`;
    const connection = `[engine.service_destinations.bench]\nuri = "${uri}"\nidentity = "${dir}/user"\n`;
    await writeFile(join(dir, "containers.conf"), `${machine}\n${connection}`);
    process.env.CONTAINERS_CONF = join(dir, "containers.conf");
    await eventually(() => execa("podman", ["--remote", "--connection", "bench", "version"]), { what: "the service" });
    return await work("bench");
  } finally {
    if (before === undefined) delete process.env.CONTAINERS_CONF;
    else process.env.CONTAINERS_CONF = before;
    for (const end of ended) await end();
    await rm(dir, { recursive: true });
  }
}
