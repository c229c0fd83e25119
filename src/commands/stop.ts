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
      const turn = await turns.running(conversation);
      if (!turn) return `${agent.displayName} is not at work here.`;
      if (!turn.requesters.includes(event.sender) && !includesLevel(level, "operate")) {
        throw new UserError(
          `This turn works for ${turn.requesters.join(", ")}. To stop it you need the right to operate; you have: ${level}.`,
        );
      }
      await runner.stop(conversation, event.sender);
      return `${agent.displayName} was stopped.`;
    },
  }),
];
