import type { Agent } from "../../domain/agents/agent.ts";
import { hearsAll } from "../../domain/agents/attention.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import { type CommandContext, defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "start",
    description:
      "Introduces the agent: which messages it answers here, and where you can read more. For those who may run commands, its computer is made ready.",
    where: "room",
    level: "chat",
    input: noInput,
    async run(_, context) {
      const { agents, prefix, room } = context;
      const introduced = agents.map(
        (agent) =>
          `**${agent.displayName}** (${agent.userId}) ${describeAnswering(agent, room)}.${startComputer(agent, context)}`,
      );
      return `Hello! ${introduced.join("\n\n")}\n\n\`${prefix}help\` lists what can be commanded.`;
    },
  }),
];

/** Has the agent's computer started, for people who may run commands on it. Returns what they are told. */
function startComputer(agent: Agent, { event, level, prefix, sandboxes, toolbox }: CommandContext): string {
  const isTheirs = includesLevel(level, "operate") && agent.pausedAt === null;
  if (!isTheirs || !sandboxes.isOffered || !toolbox.offersSet(agent, "sandbox")) return "";
  // The log says why it cannot be had; whoever uses it is told then.
  void sandboxes.use({ agent: agent.name, roomId: event.roomId }).catch(() => {});
  return ` Its computer here is made ready: \`${prefix}sandbox\` shows it.`;
}

function describeAnswering(agent: Agent, room: RoomContext): string {
  if (agent.pausedAt !== null) return "is paused, and answers nobody for now";
  const agentsHere = room.agents.filter(({ membership }) => membership === "join").length;
  if (hearsAll(agent, room, agentsHere)) return "answers everything that you say here";
  const threads = agent.settings.reply === "auto" ? ", or continues a thread that it has spoken in" : "";
  return `answers what mentions it, begins with its name, or replies to it${threads}`;
}
