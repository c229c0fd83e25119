import { UserError } from "../../base/lib/errors.ts";
import type { EventId } from "../../base/lib/ids.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Origin } from "./origin.ts";
import type { SubAgents } from "./sub-agents.ts";
import type { ToolOutcome } from "./tool.ts";

/**
 * A person's command to delegate: the agent is woken to do it, in a turn like any other, which may take its time and
 * outlives the process. The command stands in the room, so that the agent reads it there.
 */
export async function wakeToDelegate(
  subAgents: SubAgents,
  {
    agent,
    chain,
    key,
    requesters: [requester],
    roomId,
  }: Pick<Origin, "agent" | "chain" | "key" | "requesters" | "roomId">,
  name: string,
  now: Date,
): Promise<ToolOutcome> {
  await subAgents.byName(agent, name);
  if (agent.pausedAt !== null)
    throw new UserError(`${agent.displayName} is paused. Those who run this bridge can let it go on.`);
  const note = `${requester} has given you a command to delegate in the message ${chain}: call the function delegate for the sub-agent ${name} with what the message says, and then tell the room what came of it.`;
  return {
    result: `${agent.displayName} delegates it to ${name} and will answer here.`,
    wakes: [
      {
        agent: agent.name,
        roomId,
        reason: "manual",
        key,
        eventId: chain as EventId,
        chain,
        ...(requester && { requester }),
        note: toStored(systemEvent(now, note)),
      },
    ],
  };
}
