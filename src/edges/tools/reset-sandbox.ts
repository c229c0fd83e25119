import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "reset_sandbox",
  set: "sandbox",
  command: "sandbox reset",
  topic: "sandbox",
  description: "Removes this conversation's computer with all its files; the next command gets a new one.",
  wording: "Remove the computer of this conversation, with all its files",
  kind: "delete",
  reachesOutside: false,
  isRepeatable: false,
  input: z.object({}),
  async run(_, { agent, roomId, sandboxes }) {
    const wasThere = await sandboxes.reset({ agent: agent.name, roomId });
    return {
      result: wasThere
        ? "The computer was removed, with all its files. The next command gets a new one."
        : "There was no computer. The next command gets one.",
    };
  },
});
