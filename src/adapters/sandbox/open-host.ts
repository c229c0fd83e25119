import type { Clock } from "../../base/lib/clock.ts";
import type { SandboxHost, SandboxSpec } from "./host.ts";
import type { SandboxLimits } from "./limits.ts";
import { PodmanHost, type PodmanOptions } from "./podman-host.ts";

/** Engine of the sandboxes, with its own settings. Another engine is another member, and another case in `openHost`. */
export type SandboxEngine = { readonly kind: "podman" } & Omit<PodmanOptions, "clock">;

export interface SandboxSettings {
  /** Undefined: there are no sandboxes. */
  readonly engine: SandboxEngine | undefined;
  readonly image: string;
  readonly firstUid: number;
  readonly limits: SandboxLimits;
  /** Hosts to which sandboxes may connect; see `isReachEntry`. */
  readonly network: readonly string[];
  /** One that nobody has used for so long is stopped. */
  readonly idleSeconds: number;
  /** Sandboxes that run at the same time, at most. */
  readonly runningMost: number;
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
