import type { Sensor } from "../../src/engine/operations/sensor.ts";

/** Notices that somebody has joined a room of the agent. */
export const sensor: Sensor = {
  name: "arrival",
  description: "people who join a room of the agent",
  async notice({ agent, agentsHere, event }) {
    const hasJoined = event.type === "m.room.member" && event.content.membership === "join";
    const isAgent = agentsHere.some(({ userId }) => userId === event.stateKey);
    // An agent that answers only mentions is left in peace.
    if (!hasJoined || isAgent || agent.settings.reply === "mention") return undefined;
    return { reason: "new event" };
  },
};
