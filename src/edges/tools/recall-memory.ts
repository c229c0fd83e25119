import { z } from "zod";
import { tellRecalled } from "../../base/prompt/recalled.ts";
import { defineTool } from "../../engine/operations/tool.ts";

/** Memories that are given back. */
const best = 3;

export const tool = defineTool({
  name: "recall_memory",
  set: "memory",
  command: "recall",
  aliases: ["search_memory"],
  examples: ["the door code"],
  topic: "memory",
  hasNamedBehind: true,
  description: "Recalls the three memories that fit best.",
  help: "Recalls the three things that fit best, of all that the agent remembers and everybody here may read.",
  wording: "Recall what is remembered of {query}",
  kind: "read",
  isRepeatable: true,
  input: z.object({ query: z.string().trim().min(1).max(1_000).describe("What to recall") }),
  async run({ query }, { agent, by, causes, memory, roomId }) {
    const { found, sources, taint } = await memory.recall(agent, roomId, { text: query, limit: best, except: causes });
    return { ...tellRecalled(found, { by, timeZone: agent.settings.timeZone }), sources, taint };
  },
});
