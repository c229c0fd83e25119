import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Delete",
  set: "core",
  command: "rm",
  aliases: ["file_delete"],
  examples: ["notes.md", "--recursive old"],
  topic: "files",
  description: "Deletes a file. It can be restored for 7 days.",
  wording: ({ recursive }) => (recursive ? "Delete {path} {recursive:with everything in it}" : "Delete {path}"),
  kind: "delete",
  check: ({ path }, { files }) => files.requireWritable(path),
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({
    recursive: z
      .boolean()
      .meta({ description: "true: a folder with everything in it", help: "Deletes a folder with everything in it" })
      .optional(),
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
  }),
  async run({ path, recursive }, { files }) {
    const gone = await files.remove(path, { isRecursive: recursive });
    const count = await files.removedFiles(path);
    if (gone.length === 1 && (count ?? 1) <= 1) return { result: `${files.named(gone[0] ?? path)} was deleted.` };
    if (count === undefined) return { result: `${files.named(path)} was deleted with everything in it.` };
    return { result: count === 1 ? "1 file was deleted." : `${count} files were deleted.` };
  },
});
