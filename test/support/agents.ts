import type { AgentName, UserId } from "../../src/base/lib/ids.ts";
import type { Agent } from "../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../src/domain/agents/settings.ts";

/** An agent with these fields in its `agent.json`, as the directory gives it. */
export const makeAgent = (name: string, fields: Readonly<Record<string, unknown>> = {}): Agent => {
  const settings = parseAgentSettings(fields, "agent.json");
  return {
    name: name as AgentName,
    userId: `@agent_${name}:test` as UserId,
    owner: "@owner:test" as UserId,
    suffix: "k3f9",
    deviceId: "DEVICE",
    isRegistered: true,
    profile: null,
    syncToken: null,
    thoughtsRoom: null,
    wakeUpTimerSeconds: settings.wakeUpTimerSeconds,
    pausedAt: null,
    settings,
    displayName: settings.displayName ?? name,
  };
};
