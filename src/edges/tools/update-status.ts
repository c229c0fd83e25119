import { z } from "zod";
import { statusText } from "../../base/prompt/state.ts";
import { formatPath } from "../../domain/files/path.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const most = 2_000;

export const tool = defineTool({
  name: "update_status",
  set: "memory",
  command: "now",
  examples: [
    '"Outline the post" "Write the introduction"',
    '"Book the hall" "Call again on Monday" --blockers "No answer"',
  ],
  topic: "memory",
  hasNamedBehind: true,
  description:
    "Overwrites NOW.md, your current goal here, which you are shown with every step, also after a restart. Call it whenever you finish a step of longer work or change the plan: do not keep a plan in your head.",
  help: "Sets what the agent works on in this room: its file NOW.md.",
  kind: "update",
  isOwn: true,
  isRepeatable: true,
  runsBeside: false,
  isLogged: false,
  input: z.object({
    new_status_text: z.string().trim().min(1).max(most).describe("The goal, and what is done of it"),
    next_step: z.string().trim().min(1).max(most).describe("What comes next"),
    blockers: z.string().trim().max(most).describe("What it waits for").optional(),
  }),
  async run(status, { agent, roomId, files }) {
    const path = formatPath(workingFile({ agent: agent.name, roomId }, "NOW.md"));
    await files.write(path, statusText(status));
    return { result: `${files.named(path)} is written.` };
  },
});
