import { defineAgentCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineAgentCommand({
    command: "stop",
    description:
      "Ends at once everything that the agent is doing here, by itself or by a command, and everything that it waits for.",
    // Who may stop what is the runner's to know.
    level: "chat",
    input: noInput,
    async run(_, { agent, event, level, runner }) {
      const conversation = { agent: agent.name, roomId: event.roomId };
      const stopped = await runner.stopFor(conversation, { userId: event.sender, level });
      return stopped ? `${agent.displayName} was stopped.` : `${agent.displayName} is not at work here.`;
    },
  }),
];
