import type { Database } from "../../src/adapters/database/connection.ts";
import { WayOut } from "../../src/adapters/web/way-out.ts";
import { type Clock, systemClock } from "../../src/base/lib/clock.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import type { ServerSettings } from "../../src/domain/servers/server-settings.ts";
import { Servers } from "../../src/domain/servers/servers.ts";
import { ServerTools } from "../../src/domain/tables/server-tools.ts";
import { noServerComputers } from "./mind.ts";
import type { ToolServer } from "./tool-server.ts";

/** The servers of one process, as its configuration has them. */
export function serversOf(
  database: Database,
  server: ToolServer,
  fields: Partial<ServerSettings> & { readonly clock?: Clock } = {},
): Servers {
  const { clock = systemClock, ...own } = fields;
  const settings = {
    door: { url: server.url, headers: {} },
    include: ["*"],
    timeoutMs: 30_000,
    isTrusted: false,
    kinds: {},
  };
  const wayOut = new WayOut({ allow: [server.door], isPatient: true });
  return new Servers({
    settings: [{ name: "wiki", ...settings, ...own }],
    exchange: (...request) => wayOut.exchange(...request),
    computers: noServerComputers,
    table: new ServerTools(database),
    clock,
    log: silentLog,
    tellOthers: () => {},
    onCalled: () => {},
    onLooked: () => {},
  });
}
