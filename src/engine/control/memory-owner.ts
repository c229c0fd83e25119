import { UserError } from "../../base/lib/errors.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import type { CommandContext } from "./define-command.ts";

/**
 * Finds the agent whose memory a command takes elsewhere, or adds to.
 * @param name left out where one agent is here
 * @throws UserError where the person is neither its owner nor an admin
 */
export async function keeperOf(
  name: string | undefined,
  { agents, directory, event, level, prefix, room }: CommandContext,
): Promise<Agent> {
  const [only, another] = agents;
  if (name === undefined && (!only || another))
    throw new UserError(`Name the agent, such as \`${prefix}export ${only?.name ?? "helper"}\`.`);
  const agent = name === undefined ? only : await requireAgent(directory, name);
  if (!agent) throw new UserError("There is no agent here.");
  if (agent.owner !== event.sender && level !== "admin")
    throw new UserError(`Only the owner of ${agent.name} and admins may take its memory elsewhere, or add to it.`);
  if (room.kind !== "control" && !agents.some(({ userId }) => userId === agent.userId))
    throw new UserError(`${agent.name} is not in this room. Go to a room with it, or to the control room.`);
  return agent;
}
