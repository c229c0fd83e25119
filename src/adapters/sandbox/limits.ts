/** Limits of one sandbox. */
export interface SandboxLimits {
  readonly memoryMegabytes: number;
  /** Processors, also in parts: 0.5. */
  readonly cpus: number;
  readonly processes: number;
  /** Of `/tmp`, which is in memory. */
  readonly tmpMegabytes: number;
  /** Of `/dev/shm`, which is in memory. */
  readonly sharedMegabytes: number;
  /** Of one file. */
  readonly fileMegabytes: number;
  /** Of all files together, where the host's file system can limit a volume. */
  readonly diskMegabytes: number | undefined;
  /** Time limit of a command, unless it is given another. */
  readonly commandSeconds: number;
}

/** Room on disks that the watch keeps. */
export interface DiskLimits {
  /** Bytes and files for which a host's disk keeps room. */
  readonly freeMegabytes: number;
  readonly freeFiles: number;
  /** Of one workspace. */
  readonly workspaceMegabytes: number;
  readonly workspaceFiles: number;
}

/** The runner with all the output that it may keep: 32 commands of 1 MiB, and itself. */
export const runnerMegabytes = 64;
/** Processes that commands do not get: the runner, a supervisor for each of 32 commands, and those that connect. */
export const reservedProcesses = 48;

/** Memory that commands could fill without using any of their own: with more than half of all, nothing would be left to work in. */
export const fillableMegabytes = ({ tmpMegabytes, sharedMegabytes }: SandboxLimits): number =>
  tmpMegabytes + sharedMegabytes + runnerMegabytes;
