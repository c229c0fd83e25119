import { expect, it } from "vitest";
import { checkAgents } from "../../../src/app/operator/check-agents.ts";
import type { CheckSetting, Finding } from "../../../src/app/operator/check-finding.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newUser } from "../../support/rows.ts";

onEachDatabase((database) => {
  it("tells of an agent that is to have the tools of a server which is not configured", async () => {
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const settings = parseAgentSettings({ mcp: ["wiki", "wikki"] }, "test");
    await directory.seed({ name: "helper" as AgentName, owner: newUser(), persona: undefined, settings }, "test");
    const config = { mcp: [{ name: "wiki" }], agents: [], permissions: {} };
    const found: Finding[] = [];
    for await (const finding of checkAgents(database(), { config, found: {} } as unknown as CheckSetting))
      found.push(finding);
    expect(found[0]).toEqual({
      id: "agents",
      state: "warning",
      says: "the agent helper is to have the tools of wikki, and config.yaml has no server of that name.",
      remedy: "Correct mcp in agents:/helper/agent.json, or write mcp.wikki into config.yaml.",
    });
  });
});
