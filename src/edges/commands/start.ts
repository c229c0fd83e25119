import type { Agent } from "../../domain/agents/agent.ts";
import { hearsAll } from "../../domain/agents/attention.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import { defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "start",
    description: "Introduces the agent: which messages it answers here, and where you can read more.",
    where: "room",
    level: "chat",
    input: noInput,
    async run(_, { agents, prefix, room }) {
      const introduced = agents.map(
        (agent) => `**${agent.displayName}** (${agent.userId}) ${describeAnswering(agent, room)}.`,
      );
      return `Hello! ${introduced.join("\n\n")}\n\n\`${prefix}help\` lists what can be commanded.`;
    },
  }),
];

function describeAnswering(agent: Agent, room: RoomContext): string {
  if (agent.pausedAt !== null) return "is paused, and answers nobody for now";
  const agentsHere = room.agents.filter(({ membership }) => membership === "join").length;
  if (hearsAll(agent, room, agentsHere)) return "answers everything that you say here";
  const threads = agent.settings.reply === "auto" ? ", or continues a thread that it has spoken in" : "";
  return `answers what mentions it, begins with its name, or replies to it${threads}`;
}
