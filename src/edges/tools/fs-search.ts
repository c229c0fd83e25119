import { z } from "zod";
import type { SearchArguments } from "../../domain/desk/search-source.ts";
import { searchModes } from "../../domain/files/search.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Search",
  set: "core",
  command: "search",
  examples: ["rooms:/**/*.md figures of the second quarter"],
  topic: "files",
  description: "Searches files by their names, words or meaning; the results stand in a window.",
  help: "Searches files by their names, by the words in them, or by their meaning. The results stand in a window on the agent's desk, best first.",
  wording: "Look for {query} in {path}",
  kind: "read",
  runsBeside: false,
  isRepeatable: true,
  paths: ["path"],
  input: z.object({
    path: z.string().trim().min(1).meta({
      description: "Folder, or pattern as for FS_Find",
      help: "The folder to search: drafts in this room, or share:/path, or a pattern such as `agents:/**/*.md`",
    }),
    query: z.string().trim().min(1).max(500).describe("Words to look for"),
    searchMode: z.enum(searchModes).default("content").meta({
      description: "semantic: by meaning, in what is knowledge",
      help: "filename: in the names; content: in the texts; semantic: by the meaning of files that the agent knows (`index`), and by the words in the others",
    }),
  }),
  async run({ path, query, searchMode: mode }, { by, windows }) {
    const { said, shown } = await windows.open({
      srcType: "search",
      src: path,
      arguments: JSON.stringify({ query, mode } satisfies SearchArguments),
      attributes: { query, searchMode: mode },
    });
    return { result: by === "person" && shown ? shown : said };
  },
});
