import { z } from "zod";
import { indexedMost } from "../../domain/files/as-knowledge.ts";
import { isPermitted } from "../../engine/operations/gate.ts";
import { entriesText, knowFile } from "../../engine/operations/knowing.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Index",
  set: "core",
  command: "index",
  aliases: ["file_index"],
  examples: ["report.md"],
  topic: "files",
  description: "Keeps the sections of a text file as knowledge.",
  help: "Cuts a text file into sections and keeps each as knowledge of the agent. If you may not create anything, it only counts the sections.",
  wording: "Keep {path} as knowledge",
  kind: "read",
  runsBeside: false,
  carries: ({ path }) => path,
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({ path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }) }),
  async run({ path }, context) {
    const { entries, isCut, keep } = await knowFile(path, context);
    const what = `${isCut ? `the first ${indexedMost} characters of ` : ""}${context.files.named(path)}`;
    const count = entriesText(entries);
    if (!(await isPermitted("create", context))) {
      return { result: `${what} would make ${count}. None was made: you may not create anything here.` };
    }
    await keep();
    return { result: `${what} made ${count}.` };
  },
});
