import { z } from "zod";
import { move } from "../../domain/files/move.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const shownMax = 100;

export const tool = defineTool({
  name: "FS_Move",
  set: "core",
  command: "mv",
  aliases: ["file_move"],
  examples: ["rooms:/!abc:example.org/*.md rooms:/!abc:example.org/old/"],
  topic: "files",
  description: "Moves or renames a file or folder, or moves all files that fit a pattern of paths into a folder.",
  kind: "update",
  sendsTo: ({ target }, { files }) => files.placeElsewhere(target),
  carries: ({ glob }) => glob,
  repeatable: true,
  pathLast: true,
  input: z.object({
    glob: z.string().min(1).describe("The file, the folder or the pattern, as share:/path"),
    target: z.string().min(1).describe("The new path; or the folder into which it goes"),
  }),
  async run({ glob, target }, { files }) {
    const moved = await move(files, glob, target);
    const lines = moved.slice(0, shownMax).map(({ from, to }) => `${from} → ${to}`);
    const more = moved.length - shownMax;
    return { result: [...lines, ...(more > 0 ? [`[${more} more]`] : [])].join("\n"), verbatim: true };
  },
});
