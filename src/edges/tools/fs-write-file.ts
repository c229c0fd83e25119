import { z } from "zod";
import { isInSandbox } from "../../domain/files/path.ts";
import { sizeText } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_WriteFile",
  set: "core",
  command: "write",
  aliases: ["file_create"],
  examples: ["notes.md # Notes", "--append notes.md One line more"],
  topic: "files",
  description: "Writes a text file: makes it, replaces what is there, or appends.",
  help: "Writes a text file: makes a new one, replaces its text, or adds to its end. The former text can be restored for 7 days.",
  wording: ({ append }, kind) =>
    append ? "{append:Add to the file} {path}" : kind === "update" ? "Overwrite {path}" : "Write {path}",
  // May do unasked in a sandbox what a command there does unasked.
  kind: async ({ path }, { files }) => (!isInSandbox(path) && (await files.exists(path)) ? "update" : "create"),
  isOwn: ({ path }, { files }) => files.isScratchpad(path),
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  isRepeatable: true,
  paths: ["path"],
  input: z.object({
    append: z
      .boolean()
      .meta({ description: "true: put it behind what is there", help: "Adds the text to the end of the file" })
      .optional(),
    version: z
      .int32()
      .min(0)
      .meta({
        description: "Version that was read; no other is replaced",
        help: "The version that was read: if the file has changed since, nothing is written",
      })
      .optional(),
    path: z
      .string()
      .min(1)
      .meta({ help: "The file: notes.md in this room, or share:/path; folders on the way are made" }),
    content: z.string().meta({ help: "The text" }),
  }),
  async run({ append, path, content, version }, { files }, kind) {
    const expected = kind === "create" && !isInSandbox(path) ? 0 : version;
    const written = append
      ? await files.edit(path, (text) => text + content, expected)
      : await files.write(path, content, { expected });
    const { contentType, size } = written;
    return {
      result: `${files.named(written.path)} was written: version ${written.version}, ${contentType}, ${sizeText(size)}.`,
    };
  },
});
