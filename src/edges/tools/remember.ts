import { z } from "zod";
import { importanceOf } from "../../domain/memory/importance.ts";
import { defineTool } from "../../engine/operations/tool.ts";

/** Importance of something that was to be remembered, unless the rules give it more. */
const askedImportance = 0.7;

export const tool = defineTool({
  name: "Remember",
  set: "memory",
  command: "remember",
  examples: ["the spare key is under the blue pot", "the office closes at six --shareable"],
  topic: "memory",
  hasNamedBehind: true,
  description: "Keeps something in memory for good. All that is said is remembered anyway: this makes it stand out.",
  help: "Has the agent keep something in memory. What is said here it remembers anyway: this makes it stand out.",
  wording: "Remember {content}{shareable: for every room}",
  kind: ({ shareable }) => Promise.resolve(shareable ? "update" : "create"),
  isOwn: ({ shareable }) => !shareable,
  isRepeatable: true,
  isImmediate: true,
  input: z.object({
    content: z.string().trim().min(1).max(4_000).describe("What to remember, so that it can be understood by itself"),
    importance: z.number().min(0).max(1).optional().describe("From 0 to 1"),
    shareable: z
      .boolean()
      .default(false)
      .describe("Recalled in every room, also where not everybody may read what it was made from; people are asked"),
  }),
  async run({ content: text, importance, shareable }) {
    const memory = { kind: "observation", tool: "Remember", text } as const;
    const judged = importance ?? Math.max(askedImportance, importanceOf(memory));
    return {
      result: shareable ? "It is remembered, for every room." : "It is remembered.",
      kept: [{ ...memory, importance: judged, isShareable: shareable }],
    };
  },
});
