import { z } from "zod";
import { folderHere, formatPath, parsePath } from "../../domain/files/path.ts";
import { treeOf } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const linesMax = 500;

export const tool = defineTool({
  name: "FS_Tree",
  set: "core",
  command: "ls",
  examples: ["--depth 1 drafts"],
  topic: "files",
  description: "Shows the files below a folder as a tree, with their types and sizes.",
  wording: ({ path }) => (path === undefined ? "List the files here" : "List the files in {path}"),
  kind: "read",
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  positional: ["path"],
  input: z.object({
    depth: z.int().min(1).max(20).default(3).meta({ help: "Levels to open" }),
    path: z
      .string()
      .min(1)
      .meta({
        description: "Folder; default: this room's files",
        help: "The folder: drafts in this room, or share:/path; without it, this room's files",
      })
      .optional(),
  }),
  async run({ path, depth }, { agent, files, roomId }) {
    const folder = path === undefined ? folderHere(agent.name, roomId) : parsePath(path);
    const tree = treeOf(await files.list(formatPath(folder)), folder.path, depth, linesMax);
    const name = files.named(folder);
    return { result: `${name === "." ? "" : `${name}\n`}${tree === "" ? "[nothing here]" : tree}`, isVerbatim: true };
  },
});
