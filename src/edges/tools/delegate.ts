import { z } from "zod";
import { delegateTool } from "../../domain/agents/sub-agent.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: delegateTool,
  set: "core",
  command: "delegate",
  examples: ["clerk Which of the files of this room name a price?"],
  description: "Hands work to a sub-agent, which does it in steps of its own and tells you its answer.",
  help: "Has a sub-agent, such as planner or clerk, do a piece of work, and shows its answer.",
  wording: "Hand work to the sub-agent {subAgent}",
  kind: "read",
  runsBeside: false,
  // Its steps are in the journal, each of them once.
  isRepeatable: true,
  input: z.object({
    subAgent: z.string().min(1).max(32).meta({ help: "The sub-agent's name" }),
    request: z.string().min(1).meta({
      description: "What to do and to answer; it knows nothing besides",
      help: "The work, and the answer that is wanted. The sub-agent knows nothing else: name files, people and dates",
    }),
  }),
  run: ({ subAgent }, { delegate }) => delegate({ subAgent }),
});
