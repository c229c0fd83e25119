import { readDefinitions } from "../../adapters/mcp/definition.ts";
import { ServerFailure } from "../../adapters/mcp/failure.ts";
import { ServerLink } from "../../adapters/mcp/link.ts";
import { WayOut } from "../../adapters/web/way-out.ts";
import type { ServerSettings } from "../../domain/servers/server-settings.ts";
import { type CheckSetting, type Finding, ok, warning } from "./check-finding.ts";

const meanwhile = "Until then its tools fail; everything else works.";

/** Asks each server of tools what it has. */
export async function* checkServers({ config: { mcp, web } }: CheckSetting): AsyncGenerator<Finding> {
  const wayOut = new WayOut({ allow: web.allow, isPatient: true });
  for (const settings of mcp) yield await findingOf(settings, wayOut);
  await wayOut.close();
}

async function findingOf({ name, door }: ServerSettings, wayOut: WayOut): Promise<Finding> {
  // To start it here would end the one of the running bridge.
  if ("command" in door) return ok("mcp", `${name} is a program, and is not started here: !mcp list says how it is.`);
  const exchange: WayOut["exchange"] = (...request) => wayOut.exchange(...request);
  const link = new ServerLink({ door: { ...door, exchange }, onChanged: () => {} });
  try {
    const { tools, leftOut } = readDefinitions(name, await link.list());
    if (tools.size === 0)
      return warning("mcp", `${name} answers, and has no tool that can be used.`, `See mcp.${name}.`);
    const rest = leftOut.length === 0 ? "" : `; ${leftOut.length} more cannot be used (!mcp show ${name} says why)`;
    return ok("mcp", `${name} answers: ${tools.size} tools${rest}.`);
  } catch (error) {
    if (!(error instanceof ServerFailure)) throw error;
    return warning("mcp", `${name} does not answer: ${error.message}.`, `See mcp.${name} in config.yaml. ${meanwhile}`);
  } finally {
    await link.close();
  }
}
