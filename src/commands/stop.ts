import { defineAgentCommand, noInput } from "../agent/command.ts";
import { includesLevel } from "../agent/permissions.ts";
import { UserError } from "../lib/errors.ts";

export const commands = [
  defineAgentCommand({
    command: "stop",
    description: "Ends the agent's running turn at once.",
    // Whoever a turn works for may stop it, and whoever may operate.
    level: "chat",
    input: noInput,
    async run(_, { agent, event, level, runner, turns }) {
      const conversation = { agent: agent.name, roomId: event.roomId };
      const open = await turns.open(conversation);
      if (open.length === 0) return `${agent.displayName} is not at work here.`;
      const others = [...new Set(open.flatMap(({ requesters }) => requesters))];
      if (!includesLevel(level, "operate") && !open.some(({ requesters }) => requesters.includes(event.sender))) {
        throw new UserError(
          `This turn works for ${others.join(", ")}. To stop it you need the right to operate; you have: ${level}.`,
        );
      }
      await runner.stop(conversation, event.sender);
      return `${agent.displayName} was stopped.`;
    },
  }),
];
