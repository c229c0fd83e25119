import { z } from "zod";
import { searchTaint, type WebSearchArguments } from "../../domain/desk/web-search-source.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "WebSearch",
  set: "web",
  command: "web",
  examples: ["weather in Lisbon"],
  topic: "web",
  description: "Searches the web; the results stand in a window.",
  help: "Searches the web, or YouTube. The results stand in a window on the agent's desk, best first.",
  wording: "Search the web for {query}",
  kind: "read",
  runsBeside: false,
  isRepeatable: true,
  input: z.object({
    engine: z
      .enum(["web", "youtube"])
      .default("web")
      .meta({ description: "Where", help: "web, or youtube for videos" }),
    page: z
      .int32()
      .min(1)
      .max(20)
      .default(1)
      .meta({ description: "Of results", help: "1 for the best results, 2 for those behind them" }),
    query: z.string().trim().min(1).max(400).describe("Words to look for"),
  }),
  async run({ query, engine, page }, { by, windows }) {
    const { said, shown } = await windows.open({
      srcType: "web",
      src: query,
      arguments: JSON.stringify({ engine, page } satisfies WebSearchArguments),
      attributes: { engine, ...(page > 1 && { page: String(page) }) },
    });
    return { result: by === "person" && shown ? shown : said, taint: [searchTaint] };
  },
});
