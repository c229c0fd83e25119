import { z } from "zod";
import { sizeText } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_WriteFile",
  set: "core",
  command: "write",
  aliases: ["file_create"],
  examples: ["rooms:/!abc:example.org/notes.md # Notes", "--append rooms:/!abc:example.org/notes.md One line more"],
  topic: "files",
  description:
    "Writes a text file: makes it, or replaces what is there, or puts the content behind it. What was there can be restored for 7 days.",
  kind: async ({ path }, { files }) => ((await files.exists(path)) ? "update" : "create"),
  own: ({ path }, { files }) => files.isScratchpad(path),
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  repeatable: true,
  input: z.object({
    append: z.boolean().describe("true: put the content behind what is there").optional(),
    version: z
      .int32()
      .min(0)
      .describe("The version that was read: if it is another one by now, nothing is written")
      .optional(),
    path: z.string().min(1).describe("The file, as share:/path; folders on the way are made"),
    content: z.string().describe("The text"),
  }),
  async run({ append, path, content, version }, { files }, kind) {
    const expected = kind === "create" ? 0 : version;
    const written = append
      ? await files.append(path, content, expected)
      : await files.write(path, content, { expected });
    const { contentType, size } = written;
    return { result: `${written.path} was written: version ${written.version}, ${contentType}, ${sizeText(size)}.` };
  },
});
