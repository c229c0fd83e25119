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
  description: "Searches files by their names or by the words in them; the results stand in a window, best first.",
  help: "Searches files by their names or by the words in them. The results stand in a window on the agent's desk, best first.",
  kind: "read",
  repeatable: true,
  input: z.object({
    path: z
      .string()
      .trim()
      .min(1)
      .describe("The folder to search, as share:/path, or a pattern such as `agents:/**/*.md`"),
    query: z.string().trim().min(1).max(500).describe("The words to look for"),
    searchMode: z.enum(searchModes).default("content").describe("filename: in the names; content: in the texts"),
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
