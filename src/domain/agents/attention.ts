import type { RoomContext } from "../tables/room-context.ts";
import type { Agent } from "./agent.ts";

type Company = Pick<RoomContext, "agents" | "humans">;

/**
 * True if one person talks with the agent alone.
 * @param agentsHere how many agents are joined in the room
 */
export const isDirect = (
  { userId }: Pick<Agent, "userId">,
  { agents, humans }: Company,
  agentsHere: number,
): boolean => {
  const isAlone = agentsHere === 1 && humans === 1;
  const isDirect = humans <= 1 && agents.some((one) => one.userId === userId && one.isDirect);
  return isAlone || isDirect;
};

/**
 * True if the agent takes everything that people say in the room as meant for it, and not only what is addressed to it.
 * @param agentsHere how many agents are joined in the room
 */
export const hearsAll = (agent: Agent, room: Company, agentsHere: number): boolean => {
  const { reply } = agent.settings;
  return reply === "auto" ? isDirect(agent, room, agentsHere) : reply === "always";
};
