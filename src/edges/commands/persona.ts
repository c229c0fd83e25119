import { z } from "zod";
import { fence } from "../../adapters/matrix/markdown.ts";
import { personaPath } from "../../domain/agents/agent.ts";
import { defineAgentCommand } from "../../engine/control/define-command.ts";
import { Definition } from "../../engine/control/definition.ts";

export const commands = [
  defineAgentCommand({
    command: "persona",
    examples: ["You are Clara, who knows about gardens. You are brief."],
    topic: "agents",
    description:
      "Shows the agent's persona: who it is. If you own the agent, a text behind the command replaces it, from the next turn on; `null` brings back the default.",
    level: "use",
    input: z.object({ text: z.string().min(1).optional().describe("The new persona, in Markdown") }),
    positional: ["text"],
    async run({ text }, context) {
      const { agent, prefix } = context;
      const definition = new Definition(context, agent);
      if (text === undefined) {
        const persona = await definition.persona();
        const hint = `Its owner changes it: \`${prefix}persona TEXT\``;
        return { text: `${fence(persona.text, "markdown")}\n\n${hint}`, taint: persona.taint };
      }
      const { before, after } = await definition.setPersona(text);
      const changed = `${agent.displayName} has another persona from its next turn on: ${after?.length} characters.`;
      const undo = `\`${prefix}restore ${personaPath(agent)}\` brings back the one before.`;
      return before === null ? changed : `${changed} ${undo}`;
    },
  }),
];
