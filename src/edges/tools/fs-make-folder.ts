import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_MakeFolder",
  set: "core",
  command: "mkdir",
  aliases: ["dir_create"],
  examples: ["drafts"],
  topic: "files",
  description: "Makes a folder. Writing a file makes the folders on its way by itself.",
  wording: "Make the folder {path}",
  kind: "create",
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  repeatable: true,
  paths: ["path"],
  pathLast: true,
  input: z.object({ path: z.string().min(1).meta({ help: "The folder: drafts in this room, or share:/path" }) }),
  async run({ path }, { files }) {
    return { result: `${files.named(await files.makeFolder(path))} is there.` };
  },
});
