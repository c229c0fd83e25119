import { z } from "zod";
import { HOME } from "../../base/lib/ids.ts";
import { formatPath, parsePath } from "../../domain/files/path.ts";
import { treeOf } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const linesMax = 500;

export const tool = defineTool({
  name: "FS_Tree",
  set: "core",
  command: "ls",
  examples: ["--depth 1 rooms:/!abc:example.org"],
  topic: "files",
  description: "Shows the files below a folder as a tree, with their types and sizes.",
  kind: "read",
  repeatable: true,
  pathLast: true,
  positional: ["path"],
  input: z.object({
    depth: z.int().min(1).max(20).default(3).describe("How many levels of folders to open"),
    path: z.string().min(1).describe("The folder, as share:/path; without it, this room's files").optional(),
  }),
  async run({ path, depth }, { agent, files, roomId }) {
    const folder = parsePath(path ?? (roomId === HOME ? `agents:/${agent.name}` : `rooms:/${roomId}`));
    const tree = treeOf(await files.list(formatPath(folder)), folder.path, depth, linesMax);
    return { result: `${formatPath(folder)}\n${tree === "" ? "[nothing here]" : tree}`, verbatim: true };
  },
});
