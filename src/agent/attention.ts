import type { RoomContext } from "../database/room-context.ts";
import type { Agent } from "./agent.ts";

/**
 * Whether the agent takes everything that people say in the room as meant for it, and not only what is addressed to it.
 * @param agentsHere how many agents are joined in the room
 */
export const hearsAll = (
  { settings, userId }: Agent,
  { agents, humans }: Pick<RoomContext, "agents" | "humans">,
  agentsHere: number,
): boolean => {
  if (settings.reply !== "auto") return settings.reply === "always";
  const alone = agentsHere === 1 && humans === 1;
  const direct = humans <= 1 && agents.some((one) => one.userId === userId && one.direct);
  return alone || direct;
};
