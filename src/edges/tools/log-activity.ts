import { z } from "zod";
import { activityEntry, entryTypes } from "../../domain/files/activity.ts";
import { formatPath } from "../../domain/files/path.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import { importanceOf } from "../../domain/memory/importance.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "log_activity",
  set: "memory",
  command: "log",
  examples: ["USER_FEEDBACK It did not work: the page was empty."],
  topic: "memory",
  hasNamedBehind: true,
  description:
    "Adds an entry to LOG.md, your journal here: outcomes, corrections by people, reasons. You are shown the last ones, and long ones are summarised; when somebody says that it did not work, look there for what you tried. Calls of functions are noted by themselves.",
  help: "Adds an entry to the agent's journal of this room: its file LOG.md.",
  kind: "create",
  isOwn: true,
  isRepeatable: true,
  isLogged: false,
  input: z.object({
    entry_type: z.enum(entryTypes).describe("Kind of the entry"),
    content: z.string().trim().min(1).max(4_000).describe("Its text"),
  }),
  async run({ entry_type, content }, { agent, roomId, requesters, files, now, onLogGrown }) {
    const path = formatPath(workingFile({ agent: agent.name, roomId }, "LOG.md"));
    const bytes = await files.append(path, activityEntry(now, entry_type, content));
    onLogGrown(agent, { roomId, requesters }, bytes);
    const memory = { kind: "thought", text: content } as const;
    return {
      result: `It stands in ${files.named(path)}.`,
      kept: [{ ...memory, tool: "log_activity", importance: importanceOf(memory) }],
    };
  },
});
