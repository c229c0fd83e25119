import { z } from "zod";
import { move, requireMovable } from "../../domain/files/move.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const shownMax = 100;

export const tool = defineTool({
  name: "FS_Move",
  set: "core",
  command: "mv",
  aliases: ["file_move"],
  examples: ["*.md old/"],
  topic: "files",
  description: "Moves or renames a file or folder, or moves all files that fit a pattern into a folder.",
  wording: "Move {glob} to {target}",
  kind: "update",
  check: ({ glob, target }, { files }) => requireMovable(files, glob, target),
  sendsTo: ({ target }, { files }) => files.placeElsewhere(target),
  carries: ({ glob }) => glob,
  isRepeatable: true,
  paths: ["glob", "target"],
  isPathLast: true,
  input: z.object({
    glob: z.string().min(1).meta({
      description: "Path or pattern",
      help: "The file, the folder or the pattern: notes.md in this room, or share:/path",
    }),
    target: z.string().min(1).meta({
      description: "New path, or the folder into which it goes",
      help: "The new path, or the folder into which it goes",
    }),
  }),
  async run({ glob, target }, { files }) {
    const moved = await move(files, glob, target);
    const lines = moved.slice(0, shownMax).map(({ from, to }) => `${files.named(from)} → ${files.named(to)}`);
    const more = moved.length - shownMax;
    return { result: [...lines, ...(more > 0 ? [`[${more} more]`] : [])].join("\n"), isVerbatim: true };
  },
});
