import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { nearest, shortenTyped } from "../../base/lib/nearest.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import { type AnyCommand, type CommandContext, defineCommand, topicOf } from "../../engine/control/define-command.ts";
import {
  type Commandable,
  commandOf,
  helpFor,
  purposeOf,
  usageOf,
  wordsFor,
} from "../../engine/operations/command-line.ts";
import { levelToCommand } from "../../engine/operations/gate.ts";
import type { AnyTool } from "../../engine/operations/tool.ts";
import { findTopic, type Topic, topics } from "../../engine/operations/topics.ts";

/** The bridge's own commands that this person may give here. */
const ownHere = ({ commands, level, room, agents }: CommandContext): AnyCommand[] =>
  commands
    .filter((command) => includesLevel(level, command.level))
    .filter(({ where }) => where === "anywhere" || (where === "control" ? room.kind === "control" : agents.length > 0));

const toolsHere = ({ agents, level, toolbox }: CommandContext): AnyTool[] =>
  [...new Set(agents.flatMap((agent) => toolbox.findCommandable(agent)))].filter((tool) =>
    includesLevel(level, levelToCommand(tool)),
  );

export const commands = [
  defineCommand({
    command: "help",
    examples: ["write", "files"],
    description: "Shows the commands that you may give here, or explains one of them.",
    where: "anywhere",
    level: "chat",
    input: z.object({ about: z.string().optional().describe("A command, or one of the topics that `help` shows") }),
    positional: ["about"],
    async run({ about = "" }, context) {
      const { agents, prefix } = context;
      const known = [...ownHere(context), ...toolsHere(context)];
      const word = (about.startsWith(prefix) ? about.slice(prefix.length) : about).toLowerCase().trim();
      if (word !== "") return explain(word, known, prefix);
      const several = agents.length > 1 ? `\n\nSeveral agents are here: write \`${prefix}NAME COMMAND\`.` : "";
      return `${overviewOf(known, prefix)}${several}`;
    },
  }),
];

/** One line for each topic. */
function overviewOf(known: readonly (AnyCommand | AnyTool)[], prefix: string): string {
  const here = Map.groupBy(known, topicOf);
  const shown = Object.entries(topics).flatMap(([topic, about]) => {
    const forms = here.get(topic as Topic) ?? [];
    const words = forms.map((form) => commandOf(form)).sort((a, b) => a.localeCompare(b));
    return words.length === 0 ? [] : [{ topic, about, words }];
  });
  const example = shown.at(1) ?? shown[0];
  const lines = shown.map(
    ({ topic, about, words }) => `- **${topic}** (${about}): ${words.map((word) => `\`${prefix}${word}\``).join(", ")}`,
  );
  return `${lines.join("\n")}\n\n\`${prefix}help ${example?.topic}\` explains the commands of one line, \`${prefix}help ${example?.words[0]}\` a single one.`;
}

const lineOf = (form: Commandable, prefix: string): string => `- \`${usageOf(form, prefix)}\`: ${purposeOf(form)}`;

/** A command in full, with a line for each that begins with it; or a line for each of a topic. */
function explain(word: string, known: readonly (AnyCommand | AnyTool)[], prefix: string): string {
  const isCalled = (form: Commandable) => wordsFor(form).some((words) => words.toLowerCase() === word);
  const exact = known.filter(isCalled);
  const family = known.filter((form) => wordsFor(form).some((words) => words.startsWith(`${word} `)));
  const topic = findTopic(word);
  const others = topic === undefined ? family : known.filter((form) => topicOf(form) === topic);
  const lines = others.filter((form) => !exact.includes(form)).map((form) => lineOf(form, prefix));
  const found = [...exact.map((form) => helpFor(form, prefix)), ...(lines.length > 0 ? [lines.join("\n")] : [])];
  if (found.length > 0) return found.join("\n\n");
  const meant = nearest(word, [...known.flatMap(wordsFor), ...known.map(topicOf)]);
  const hint = meant === undefined ? "" : ` Did you mean \`${prefix}help ${meant}\`?`;
  throw new UserError(
    `There is no command \`${prefix}${shortenTyped(word)}\` for you here.${hint} \`${prefix}help\` lists them.`,
  );
}
