import type { Database } from "../../adapters/database/connection.ts";
import type { Registration } from "../../adapters/matrix/registration.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { PermissionRow } from "../../domain/tables/permissions.ts";
import type { Config } from "../config/config.ts";

/** One thing that was looked at. Only `failed` keeps the bridge from working. */
export interface Finding {
  /** Names what was looked at, the same in every version: such as `hs-token`. */
  readonly id: string;
  readonly state: "ok" | "warning" | "failed";
  /** Finding in a sentence or a few. */
  readonly says: string;
  /** Advice to the operator. */
  readonly remedy?: string;
}

/** Setting that every check is given. */
export interface CheckSetting {
  readonly config: Config;
  readonly registration: Registration;
  readonly clock: Clock;
  /** Rows that earlier checks have read. */
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
