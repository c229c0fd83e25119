import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_MakeFolder",
  set: "core",
  command: "mkdir",
  aliases: ["dir_create"],
  examples: ["rooms:/!abc:example.org/drafts"],
  topic: "files",
  description: "Makes a folder. Writing a file makes the folders on its way by itself.",
  kind: "create",
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  repeatable: true,
  pathLast: true,
  input: z.object({ path: z.string().min(1).describe("The folder, as share:/path") }),
  async run({ path }, { files }) {
    return { result: `${await files.makeFolder(path)} is there.` };
  },
});
