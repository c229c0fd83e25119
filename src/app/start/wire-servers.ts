import type { Database } from "../../adapters/database/connection.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import { WayOut } from "../../adapters/web/way-out.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import { ServerComputers } from "../../domain/servers/server-computers.ts";
import { Servers } from "../../domain/servers/servers.ts";
import { SandboxTable } from "../../domain/tables/sandboxes.ts";
import { ServerTools } from "../../domain/tables/server-tools.ts";
import type { Config } from "../config/config.ts";
import type { createMetrics } from "./metrics.ts";

interface Setting {
  readonly config: Pick<Config, "bridge" | "homeserver" | "mcp" | "sandbox" | "web">;
  readonly sandboxes: Pick<Sandboxes, "pool">;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<ReturnType<typeof createMetrics>, "serverCalled" | "serverLooked">;
}

/** Makes the servers of tools, which are reached by the guarded way out. */
export function wireServers({ config, database, notifier, clock, log, metrics, sandboxes }: Setting): Servers {
  const wayOut = new WayOut({ allow: config.web.allow, isPatient: true });
  const { bridge, homeserver, sandbox: settings } = config;
  const table = new SandboxTable(database);
  const { pool } = sandboxes;
  const [first] = pool.all;
  const computers = new ServerComputers({
    host: first?.host,
    settings,
    pass: () => (first?.selfTest ?? pool).pass(),
    owner: async () => digest("process", await table.installation(), homeserver.url, bridge.instance),
    clock,
    log,
  });
  const servers = new Servers({
    settings: config.mcp,
    exchange: (...request) => wayOut.exchange(...request),
    computers,
    table: new ServerTools(database),
    clock,
    log,
    tellOthers: (server) => notifier.tell("servers", [server]),
    onCalled: metrics.serverCalled,
    onLooked: metrics.serverLooked,
  });
  notifier.on(
    "servers",
    () => void servers.load().catch((error: unknown) => log.warn(`tools of servers: ${messageOf(error)}`)),
  );
  return servers;
}
