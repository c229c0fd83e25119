import type { SandboxSpec } from "./host.ts";
import { reservedProcesses } from "./limits.ts";

/** Ids of users that a sandbox has: 0 is the runner, 1000 runs the commands. */
const users = 65_536;
const megabyte = 1024 * 1024;

export const volumeOf = (name: string): string => `${name}-workspace`;

/**
 * Arguments of `podman create`. Nothing of the host is mounted, and there is no network: all goes over the runner's
 * stream. See docs/security.md.
 * @param seccomp path of the profile, on the machine that runs the sandbox
 */
export function createArguments(
  { name, image, firstUid, labels, limits }: SandboxSpec,
  seccomp: string,
): readonly string[] {
  const map = `0:${firstUid}:${users}`;
  const memory = `${limits.memoryMegabytes}m`;
  const fileBytes = limits.fileMegabytes * megabyte;
  return [
    "--pull=never",
    ...["--name", name],
    ...Object.entries(labels).flatMap(([label, value]) => ["--label", `${label}=${value}`]),
    ...["--hostname", "sandbox"],
    "--init",
    // The runner: user 0 of its own user namespace, which is nobody on the host, to start commands as another user.
    ...["--user", "0:0", "--workdir", "/", "--uidmap", map, "--gidmap", map],
    ...["--cap-drop=all", "--cap-add", "SETUID,SETGID,KILL"],
    "--security-opt=no-new-privileges",
    ...["--security-opt", `seccomp=${seccomp}`],
    ...["--security-opt", "mask=/proc/cmdline:/sys/block:/sys/class/block:/sys/devices/virtual/dmi"],
    ...["--read-only", "--read-only-tmpfs=false"],
    ...["--tmpfs", `/tmp:rw,nosuid,nodev,size=${limits.tmpMegabytes}m,mode=1777`],
    ...["--tmpfs", "/run/runner:rw,nosuid,nodev,noexec,size=1m,mode=0700"],
    ...["--volume", `${volumeOf(name)}:/workspace:rw,nosuid,nodev`],
    ...["--pids-limit", String(limits.processes)],
    ...["--memory", memory, "--memory-swap", memory],
    ...["--cpus", String(limits.cpus)],
    ...["--shm-size", `${limits.sharedMegabytes}m`],
    // One that is named drops the machine's defaults for all, and some machines refuse those.
    ...["--ulimit", "nofile=4096:8192", "--ulimit", "nproc=4096:8192", "--ulimit", "core=0:0"],
    ...["--ulimit", `fsize=${fileBytes}:${fileBytes}`],
    // Podman's default hands the machine's proxy in, with its password.
    "--http-proxy=false",
    ...["--network", "none", "--no-hosts"],
    ...["--log-driver", "none", "--stop-timeout", "1"],
    image,
    // Absolute: the workspace's owner chooses no program that runs as the runner.
    ...["/usr/bin/python3", "-IS", "/opt/clevernet/runner", String(limits.processes - reservedProcesses)],
  ];
}

/**
 * Arguments of `podman run` that count what is in a sandbox's workspace, in a container beside it: whatever runs in the sandbox
 * can neither close a folder to it, nor stop it. Prints bytes, then files.
 */
export const measureArguments = (id: string, image: string, seccomp: string): readonly string[] => [
  ...["--rm", "--pull=never", "--volumes-from", `${id}:ro`, "--user", "0:0", "--workdir", "/"],
  ...["--cap-drop=all", "--cap-add", "DAC_READ_SEARCH", "--security-opt=no-new-privileges"],
  ...["--security-opt", `seccomp=${seccomp}`, "--read-only", "--read-only-tmpfs=false"],
  ...["--pids-limit", "16", "--memory", "512m", "--memory-swap", "512m"],
  ...["--ulimit", "nofile=4096:8192", "--ulimit", "nproc=4096:8192", "--ulimit", "core=0:0"],
  ...["--http-proxy=false", "--network", "none", "--no-hosts", "--log-driver", "none"],
  ...[image, "/bin/sh", "-c", "du -sx --block-size=1 /workspace; du -sx --inodes /workspace"],
];

export const connectArguments = (id: string): readonly string[] => [
  ...["exec", "--interactive", "--user", "0:0", "--workdir", "/", id],
  ...["/usr/bin/socat", "-t", "0.5", "STDIO", "UNIX-CONNECT:/run/runner/socket"],
];
