import { PodmanHost } from "../../src/adapters/sandbox/podman-host.ts";
import { systemClock } from "../../src/base/lib/clock.ts";

/** Podman of this machine. */
export const localHost = (): PodmanHost => new PodmanHost({ podman: "podman", clock: systemClock });
