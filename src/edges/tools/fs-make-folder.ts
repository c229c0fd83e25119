import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_MakeFolder",
  set: "core",
  command: "mkdir",
  aliases: ["dir_create"],
  examples: ["drafts"],
  topic: "files",
  description: "Makes an empty folder.",
  wording: "Make the folder {path}",
  kind: "create",
  sendsTo: ({ path }, { files }) => files.placeElsewhere(path),
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({ path: z.string().min(1).meta({ help: "The folder: drafts in this room, or share:/path" }) }),
  async run({ path }, { files }) {
    return { result: `${files.named(await files.makeFolder(path))} is there.` };
  },
});
