import { z } from "zod";
import { type CommandContext, defineCommand } from "../agent/command.ts";
import { type Commandable, helpFor, usageOf, wordsFor } from "../agent/command-line.ts";
import { levelToCommand } from "../agent/mode.ts";
import { includesLevel } from "../agent/permissions.ts";
import { UserError } from "../lib/errors.ts";
import { nearest } from "../lib/nearest.ts";

/** The bridge's own commands that this person may give here. */
const ownHere = ({ commands, level, room, agents }: CommandContext): Commandable[] =>
  commands
    .filter((command) => includesLevel(level, command.level))
    .filter(({ where }) => where === "anywhere" || (where === "control" ? room.kind === "control" : agents.length > 0));

export const commands = [
  defineCommand({
    command: "help",
    examples: ["write"],
    description: "What can be commanded here, or how a command is written.",
    where: "anywhere",
    level: "chat",
    input: z.object({ command: z.string().optional().describe("The command that is to be explained") }),
    positional: ["command"],
    async run({ command = "" }, context) {
      const { agents, level, prefix, toolbox } = context;
      const tools = [...new Set(agents.flatMap((agent) => toolbox.commandable(agent)))].filter((tool) =>
        includesLevel(level, levelToCommand(tool)),
      );
      const known: Commandable[] = [...ownHere(context), ...tools];
      const word = (command.startsWith(prefix) ? command.slice(prefix.length) : command).toLowerCase().trim();
      if (word !== "") {
        const asked = known.filter((one) =>
          wordsFor(one).some((words) => words.toLowerCase() === word || words.startsWith(`${word} `)),
        );
        if (asked.length > 0) return asked.map((one) => helpFor(one, prefix)).join("\n\n");
        const meant = nearest(word, known.flatMap(wordsFor));
        const hint = meant === undefined ? "" : ` Did you mean \`${prefix}${meant}\`?`;
        throw new UserError(
          `There is no command \`${prefix}${word}\` for you here.${hint} \`${prefix}help\` lists them.`,
        );
      }
      const lines = known.map((one) => `- \`${usageOf(one, prefix)}\`: ${one.description}`);
      const several = agents.length > 1 ? `\n\nSeveral agents are here: write \`${prefix}NAME COMMAND\`.` : "";
      return `${lines.join("\n")}${several}`;
    },
  }),
];
