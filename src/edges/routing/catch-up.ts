import type { Clock } from "../../base/lib/clock.ts";
import type { Doorbell } from "./doorbell.ts";
import type { Reconciler } from "./reconcile.ts";
import type { Router } from "./router.ts";

/** Longest time for which new events wait for the sweep after the homeserver has come back. */
const patienceMs = 10_000;

interface CatchUpParts {
  readonly reconciler: Pick<Reconciler, "sweep">;
  readonly router: Pick<Router, "release">;
  readonly doorbell: Pick<Doorbell, "ring">;
  readonly clock: Clock;
  /** True while the homeserver answers. */
  readonly reachable: () => boolean;
}

/** After the homeserver's return: what it forgot comes before what it pushes from now on. */
export async function catchUp({ reconciler, router, doorbell, clock, reachable }: CatchUpParts): Promise<void> {
  const patience = new AbortController();
  await Promise.race([reconciler.sweep(), clock.sleep(patienceMs, patience.signal).catch(() => {})]);
  patience.abort();
  if (reachable()) router.release();
  await doorbell.ring();
}
