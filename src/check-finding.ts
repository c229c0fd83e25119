import type { Config } from "./config.ts";
import type { Database } from "./database/connection.ts";
import type { PermissionRow } from "./database/permissions.ts";
import type { Clock } from "./lib/clock.ts";
import type { Registration } from "./matrix/registration.ts";

/** One thing that was looked at. Only `failed` keeps the bridge from working. */
export interface Finding {
  /** Names what was looked at, the same in every version: such as `hs-token`. */
  readonly id: string;
  readonly state: "ok" | "warning" | "failed";
  /** What was seen, a sentence or a few. */
  readonly says: string;
  /** What to do about it. */
  readonly remedy?: string;
}

/** What each check is given. */
export interface CheckSetting {
  readonly config: Config;
  readonly registration: Registration;
  readonly clock: Clock;
  /** What earlier checks have read. */
  readonly found: { permissions?: readonly PermissionRow[] };
  /** Of the running bridge that is asked to look at itself; otherwise it is opened for the check. */
  readonly running: Database | undefined;
}

export const ok = (id: string, says: string): Finding => ({ id, state: "ok", says });
export const warning = (id: string, says: string, remedy: string): Finding => ({ id, state: "warning", says, remedy });
export const failed = (id: string, says: string, remedy?: string): Finding => ({
  id,
  state: "failed",
  says,
  ...(remedy !== undefined && { remedy }),
});

const marks = { ok: "✓", warning: "!", failed: "✗" } as const;

/** A finding for people: a line, and its remedy below it. */
export const findingText = ({ id, state, says, remedy }: Finding): string =>
  [`${marks[state]} ${id}: ${says}`, ...(remedy === undefined ? [] : [`  → ${remedy}`])].join("\n");
