import type { UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { actorKind } from "../../domain/rights/permissions.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

/** Checks that somebody is let in, and that somebody may command. */
export async function* checkAccess({ config, found }: CheckSetting): AsyncGenerator<Finding> {
  const { serverName } = config.homeserver;
  // Permissions set by hand stay; the others are made as the configuration has them at the next start.
  const byHand = (found.permissions ?? []).filter(({ setBy }) => setBy !== null);
  const levels = new Map<string, string | null>(Object.entries(config.permissions));
  for (const { actor, level } of byHand) levels.set(actor, level);
  const granted = [...levels].filter(([, level]) => level !== null && level !== "none");
  if (granted.length === 0) {
    yield failed(
      "permissions",
      "nobody may do anything.",
      `Let somebody in, in permissions of config.yaml: "@you:${serverName}": admin`,
    );
    return;
  }
  const isElsewhere = granted.every(([actor]) => {
    const kind = actorKind(actor);
    if (kind === "server") return actor !== serverName;
    return kind === "user" && splitUserId(actor as UserId).server !== serverName;
  });
  if (isElsewhere) {
    yield warning(
      "permissions",
      `nobody of ${serverName} is let in, only people of other servers.`,
      `If that is not meant, add to permissions of config.yaml: ${serverName}: chat`,
    );
  } else yield ok("permissions", `${granted.length} entries let people in.`);
  const admins = granted.filter(([, level]) => level === "admin").map(([actor]) => actor);
  if (admins.some((actor) => actorKind(actor) === "user")) yield ok("admin", `${admins.join(", ")}.`);
  else {
    yield warning(
      "admin",
      "nobody is named as admin by a full user id: no one hears of trouble, nor can command the bridge.",
      `Add to permissions of config.yaml: "@you:${serverName}": admin`,
    );
  }
}
