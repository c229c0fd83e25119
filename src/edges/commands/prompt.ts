import { z } from "zod";
import { fence } from "../../adapters/matrix/markdown.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineAgentCommand } from "../../engine/control/define-command.ts";
import { Definition } from "../../engine/control/definition.ts";

export const commands = [
  defineAgentCommand({
    command: "prompt",
    examples: ["You are a helpful assistant. Answer in French."],
    topic: "agents",
    description:
      "Shows the agent's system prompt, which its model reads first. If you own the agent, a text behind the command replaces it, from the next turn on; `null` brings back the default.",
    level: "use",
    input: z.object({ text: z.string().min(1).optional().describe("The new system prompt") }),
    positional: ["text"],
    async run({ text }, context) {
      const { agent, prefix } = context;
      const definition = new Definition(context, agent);
      if (text !== undefined) return changeText(await definition.setPrompt(text));
      const prompt = await definition.prompt();
      const hint = `Its owner changes it: \`${prefix}prompt TEXT\``;
      return { text: `${fence(prompt.text)}\n\n${hint}`, taint: prompt.taint };
    },
  }),
];
