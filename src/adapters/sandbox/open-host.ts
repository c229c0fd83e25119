import type { Clock } from "../../base/lib/clock.ts";
import type { SandboxHost, SandboxSpec } from "./host.ts";
import type { DiskLimits, SandboxLimits } from "./limits.ts";
import { PodmanHost, type PodmanOptions } from "./podman-host.ts";

/** Engine of the sandboxes, with its own settings. Another engine is another member, and another case in `openHost`. */
export type SandboxEngine = { readonly kind: "podman" } & Omit<PodmanOptions, "clock">;

/** A machine on which sandboxes run. */
export interface HostSettings {
  /** By which the database knows it. */
  readonly name: string;
  readonly engine: SandboxEngine;
  /** Sandboxes that run there at the same time, at most. */
  readonly runningMost: number;
}

interface BackupSettings {
  /** Folder for the archives of workspaces; absolute. */
  readonly folder: string;
  /** Of one archive. */
  readonly maxMegabytes: number;
}

export interface SandboxSettings {
  /** None: there are no sandboxes. */
  readonly hosts: readonly HostSettings[];
  /** Undefined: files are in their workspace alone. */
  readonly backups: BackupSettings | undefined;
  readonly image: string;
  readonly firstUid: number;
  readonly limits: SandboxLimits;
  /** Hosts to which sandboxes may connect; see `isReachEntry`. */
  readonly network: readonly string[];
  /** One that nobody has used for so long is stopped. */
  readonly idleSeconds: number;
  readonly disk: DiskLimits;
}

export function openHost(engine: SandboxEngine, clock: Clock): SandboxHost {
  switch (engine.kind) {
    case "podman":
      return new PodmanHost({ ...engine, clock });
  }
}

/** Sandbox as the settings want it. */
export const specOf = (
  { image, firstUid, limits }: Pick<SandboxSettings, "image" | "firstUid" | "limits">,
  name: string,
  labels: SandboxSpec["labels"],
): SandboxSpec => ({ name, labels, image, firstUid, limits });
