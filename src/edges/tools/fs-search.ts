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
  description: "Searches files by their names or by the words in them; the results stand in a window.",
  help: "Searches files by their names or by the words in them. The results stand in a window on the agent's desk, best first.",
  wording: "Look for {query} in {path}",
  kind: "read",
  beside: false,
  repeatable: true,
  paths: ["path"],
  input: z.object({
    path: z.string().trim().min(1).meta({
      description: "Folder, or pattern as for FS_Find",
      help: "The folder to search: drafts in this room, or share:/path, or a pattern such as `agents:/**/*.md`",
    }),
    query: z.string().trim().min(1).max(500).describe("Words to look for"),
    searchMode: z
      .enum(searchModes)
      .default("content")
      .meta({ description: "In names or in texts", help: "filename: in the names; content: in the texts" }),
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
