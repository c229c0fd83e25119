import { z } from "zod";
import { destinationOf } from "../../domain/files/move.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Copy",
  set: "core",
  command: "cp",
  aliases: ["file_copy"],
  examples: ["rooms:/!abc:example.org/notes.md rooms:/!abc:example.org/old/"],
  topic: "files",
  description: "Copies a file to another path, or into a folder.",
  kind: async ({ path, target }, { files }) =>
    (await files.exists(await destinationOf(files, path, target))) ? "update" : "create",
  sendsTo: ({ target }, { files }) => files.placeElsewhere(target),
  carries: ({ path }) => path,
  repeatable: true,
  pathLast: true,
  input: z.object({
    path: z.string().min(1).describe("The file, as share:/path"),
    target: z.string().min(1).describe("The new path, or a folder: a path that ends with a slash or is one already"),
  }),
  async run({ path, target }, { files }, kind) {
    const expected = kind === "create" ? 0 : undefined;
    const written = await files.copy(path, await destinationOf(files, path, target), { expected });
    return { result: `${written.path} was written: version ${written.version}.` };
  },
});
