import { z } from "zod";
import { windowActions } from "../../domain/desk/window-action.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "Window_Action",
  set: "core",
  command: "window",
  examples: ["file_3 scroll 20", "search_4 query What does it say about the deadline?"],
  topic: "files",
  description:
    "Moves or changes a window. scroll: by `argument` lines, below 0 up; without it to the next page. goto: a line, or end. resize: to so many lines. maximize: all that fits. minimize: its name only. query: another model answers about the whole content.",
  help: "Moves or changes a window on the agent's desk: scroll (by lines; without a number to the next page), goto (a line, or end), resize (to a number of lines), maximize (all of it, as far as it fits), minimize (its name only), restore (its former size), pin (it stays open), unpin, refresh (reads it again), query (another model answers a question about the whole content), close.",
  kind: "read",
  runsBeside: false,
  isOwn: true,
  isRepeatable: true,
  input: z.object({
    windowId: z.string().min(1).meta({ description: "Such as file_3", help: "The window's name, such as file_3" }),
    action: z.enum(windowActions).meta({ help: "What to do" }),
    argument: z
      // Some models write a line as a number.
      .preprocess((value) => (typeof value === "number" ? String(value) : value), z.string().trim().max(4_000))
      .optional()
      .meta({
        description: "Of scroll, goto, resize, query",
        help: "For scroll a number of lines, below 0 to go up; for goto a line or end; for resize lines; for query the question",
      }),
  }),
  positional: ["argument"],
  async run({ windowId, action, argument = "" }, { by, windows }) {
    const { images = [], said, shown, sources, taint } = await windows.act(windowId, action, argument);
    return { result: by === "person" && shown ? shown : said, sources, taint, images };
  },
});
