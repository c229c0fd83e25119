import { z } from "zod";
import { element } from "../../base/lmml/element.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "SetAgentParameters",
  set: "core",
  command: "set",
  examples: ["600"],
  description: "Changes how you work until the bridge starts again.",
  help: "Sets how long the agent does nothing before it wakes by itself. It holds until the bridge starts again.",
  wording: "Let me wake by myself after {wakeUpTimerSeconds} seconds",
  kind: "update",
  isRepeatable: true,
  input: z.object({
    wakeUpTimerSeconds: z
      .int()
      .min(60)
      .max(10_800)
      .describe("Seconds without a turn after which the agent wakes by itself"),
  }),
  async run({ wakeUpTimerSeconds }, { agent, agents }) {
    await agents.table.setTimer(agent.name, wakeUpTimerSeconds);
    return { result: element("agentParameters", { wakeUpTimerSeconds }) };
  },
});
