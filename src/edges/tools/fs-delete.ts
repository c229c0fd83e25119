import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Delete",
  set: "core",
  command: "rm",
  aliases: ["file_delete"],
  examples: ["rooms:/!abc:example.org/notes.md", "--recursive rooms:/!abc:example.org/old"],
  topic: "files",
  description: "Deletes a file. It can be restored for 7 days.",
  kind: "delete",
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  repeatable: true,
  pathLast: true,
  input: z.object({
    recursive: z.boolean().describe("true: a folder with everything in it").optional(),
    path: z.string().min(1).describe("The file, as share:/path"),
  }),
  async run({ path, recursive }, { files }) {
    const gone = await files.remove(path, { recursive });
    return { result: gone.length === 1 ? `${gone[0]} was deleted.` : `${gone.length} files were deleted.` };
  },
});
