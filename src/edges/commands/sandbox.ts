import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { outputFile } from "../../domain/sandboxes/keep-output.ts";
import type { CommandRow } from "../../domain/tables/sandbox-commands.ts";
import { type CommandContext, defineAgentCommand, noInput } from "../../engine/control/define-command.ts";

const commandMost = 80;

/** Command lines as the people here may see them. */
async function shownLines(
  rows: readonly CommandRow[],
  { agent, event, history }: Pick<CommandContext, "event" | "history"> & { readonly agent: Pick<Agent, "owner"> },
): Promise<string[]> {
  const audience = await history.audience(event.roomId, agent.owner);
  return Promise.all(
    rows.map(async ({ command, place, sources }) => {
      if (!(await history.mayReadAll(audience, [...new Set([...sources, event.roomId])], agent.owner, place)))
        return "a command that not everybody here may read";
      if (command === "") return "a command that was redacted";
      const [first = ""] = command.split("\n");
      return inlineCode(first.length > commandMost ? `${first.slice(0, commandMost)}…` : first);
    }),
  );
}

export const commands = [
  defineAgentCommand({
    command: "sandbox",
    description: "Shows the computer on which the agent runs commands for this room, and what runs on it.",
    topic: "sandbox",
    level: "use",
    input: noInput,
    async run(_, context) {
      const { agent, clock, event, prefix, sandboxCommands, sandboxes } = context;
      const conversation = { agent: agent.name, roomId: event.roomId };
      const ageOf = (at: Date) => (clock.now().getTime() - at.getTime()) / 1_000;
      const status = await sandboxes.status(conversation);
      const next = `\`${prefix}run\` starts it.`;
      if (!status) return `There is no computer here yet. ${next}`;
      if (status.isAway)
        return `The machine of the computer (${status.host}) does not answer now. \`${prefix}sandbox move\` makes the computer anew on another one, ${status.backedUpAt ? `with its files as they were ${lengthText(ageOf(status.backedUpAt))} ago` : "empty, since there is no backup of its files"}.`;
      if (!status.isThere) return `There is no computer here now. \`${prefix}run\` makes one.`;
      if (!status.isRunning) return `The computer is stopped; its files are kept. ${next}`;
      const { idleSeconds, limits } = sandboxes.settings;
      const idle = ageOf(status.usedAt);
      const under = await sandboxCommands.underWay(conversation);
      const shown = await shownLines(under, context);
      const lines = under.map(({ isBackground, number, outcome }, index) => {
        const how = isBackground ? "in the background" : outcome ? "left something running" : "runs";
        return `- ${number}: ${shown[index]}, ${how}; \`${prefix}stop ${number}\` ends it; output: \`sandbox:${outputFile(number, isBackground)}\``;
      });
      return [
        `The computer runs: ${limits.memoryMegabytes} MB of memory, ${limits.cpus} ${limits.cpus === 1 ? "processor" : "processors"}. Used ${idle < 1 ? "just now" : `${lengthText(idle)} ago`}; it is stopped after ${lengthText(idleSeconds)} without use.`,
        ...(lines.length === 0 ? ["No command runs on it."] : lines),
        `\`${prefix}sandbox reset\` removes it with all its files.`,
      ].join("\n");
    },
  }),
  defineAgentCommand({
    command: "sandbox move",
    description:
      "Makes the computer of this room anew on another machine, where its own does not answer: with its files as they were at the last backup.",
    topic: "sandbox",
    level: "operate",
    input: noInput,
    async run(_, { agent, event, sandboxes }) {
      const { at, row } = await sandboxes.placing.move({ agent: agent.name, roomId: event.roomId });
      return `The computer is on ${at.name} now, ${row.isBare ? "with the files of its last backup" : "and is empty"}. Nothing runs on it.`;
    },
  }),
];
