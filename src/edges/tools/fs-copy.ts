import { z } from "zod";
import { destinationOf } from "../../domain/files/move.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Copy",
  set: "core",
  command: "cp",
  aliases: ["file_copy"],
  examples: ["notes.md old/"],
  topic: "files",
  description: "Copies a file to another path, or into a folder.",
  wording: "Copy {path} to {target}",
  kind: async ({ path, target }, { files }) =>
    (await files.exists(await destinationOf(files, path, target))) ? "update" : "create",
  sendsTo: ({ target }, { files }) => files.placeElsewhere(target),
  carries: ({ path }) => path,
  isRepeatable: true,
  paths: ["path", "target"],
  isPathLast: true,
  input: z.object({
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
    target: z.string().min(1).meta({
      description: "New path, or a folder",
      help: "The new path, or a folder: a path that ends with a slash or is one already",
    }),
  }),
  async run({ path, target }, { files }, kind) {
    const expected = kind === "create" ? 0 : undefined;
    const written = await files.copy(path, await destinationOf(files, path, target), { expected });
    return { result: `${files.named(written.path)} was written: version ${written.version}.` };
  },
});
