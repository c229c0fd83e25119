import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { requireLevel } from "../../domain/rights/permissions.ts";
import { type CommandContext, defineAgentCommand } from "../../engine/control/define-command.ts";

export const commands = [
  defineAgentCommand({
    command: "stop",
    description:
      "Ends at once everything that the agent is doing here, by itself or by a command, and everything that it waits for. With a number: one command on its computer, and what that has left running.",
    // Who may stop what is the runner's to know.
    level: "chat",
    positional: ["number"],
    input: z.object({
      number: z.int().min(1).optional().describe("Number of a command, as `!sandbox` lists them"),
    }),
    async run({ number }, context) {
      const { agent, event, level, prefix, runner, sandboxCommands } = context;
      const conversation = { agent: agent.name, roomId: event.roomId };
      if (number !== undefined) return stopCommand(conversation, number, context);
      const isStopped = await runner.stopFor(conversation, { userId: event.sender, level });
      // Its process may have died: then nobody else ends what it has begun.
      if (isStopped) void sandboxCommands.endDeserted().catch(() => {});
      const said = isStopped ? `${agent.displayName} was stopped.` : `${agent.displayName} is not at work here.`;
      return said + leftText(await leftRunning(conversation, isStopped, context), prefix);
    },
  }),
];

/** Numbers of the commands on the computer that go on. One that was just stopped may be ending still. */
async function leftRunning(
  conversation: Conversation,
  isStopped: boolean,
  { sandboxCommands, sandboxes }: Pick<CommandContext, "sandboxCommands" | "sandboxes">,
): Promise<number[]> {
  if (!(await sandboxes.seen.find(conversation))?.isAwake) return [];
  // To stop an agent works also where its computer does not answer.
  const under = await sandboxCommands.underWay(conversation).catch(() => []);
  return under.flatMap(({ isBackground, number }) => (isBackground || !isStopped ? number : []));
}

function leftText(numbers: readonly number[], prefix: string): string {
  const [first] = numbers;
  if (first === undefined) return "";
  const which = numbers.length === 1 ? `Command ${first} goes on` : `Commands ${numbers.join(", ")} go on`;
  return ` ${which} on its computer: \`${prefix}stop ${first}\` ends ${numbers.length === 1 ? "it" : "one"}, \`${prefix}sandbox\` lists what runs.`;
}

async function stopCommand(
  conversation: Conversation,
  number: number,
  { event, level, prefix, sandboxCommands }: CommandContext,
): Promise<string> {
  const found = (await sandboxCommands.underWay(conversation)).find((one) => one.number === number);
  if (!found)
    throw new UserError(
      `There is no command ${number} under way on the computer of this room. \`${prefix}sandbox\` lists them.`,
    );
  if (!found.requesters.includes(event.sender)) requireLevel(level, "operate");
  await sandboxCommands.end(conversation, found);
  return `Command ${number} was stopped.`;
}
