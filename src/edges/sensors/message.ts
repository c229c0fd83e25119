import { isAddressedByName } from "../../adapters/matrix/message.ts";
import { hearsAll } from "../../domain/agents/attention.ts";
import type { Scene, Sensor } from "../../engine/operations/sensor.ts";

/** Notices messages that are meant for the agent. */
export const sensor: Sensor = {
  name: "message",
  description: "messages in a room that are addressed to the agent",
  async notice(scene) {
    return (await isMeant(scene)) ? { reason: "new event" } : undefined;
  },
};

async function isMeant(scene: Scene): Promise<boolean> {
  const { agent, message, room, agentsHere } = scene;
  if (!message || message.msgtype === "m.notice" || message.replaces !== undefined) return false;
  const { reply } = agent.settings;
  const mentions = message.mentions?.userIds ?? [];
  if (mentions.includes(agent.userId)) return true;
  if (agentsHere.some((other) => mentions.includes(other.userId))) return false;
  if (mentions.length === 0) {
    if (isAddressedByName(message.body, [agent.userId, agent.displayName, agent.name])) return true;
    const others = agentsHere.filter((other) => other.userId !== agent.userId);
    if (others.some((other) => isAddressedByName(message.body, [other.userId, other.displayName, other.name])))
      return false;
  }
  if (message.replyTo !== undefined && (await scene.senderOf(message.replyTo)) === agent.userId) return true;
  // Agents that met in a thread would otherwise go on there by themselves.
  const isByAgent = agentsHere.some((other) => other.userId === scene.event.sender);
  if (reply === "mention" || (isByAgent && reply !== "always")) return false;
  if (message.threadId !== undefined && (await scene.hasSpokenIn(message.threadId))) return true;
  return hearsAll(agent, room, agentsHere.length);
}
