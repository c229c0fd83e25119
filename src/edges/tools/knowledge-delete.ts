import { z } from "zod";
import { isWebAddress, pageSourcePrefix } from "../../base/lib/web-address.ts";
import { folderHere, fromShare } from "../../domain/files/path.ts";
import type { SourceChoice } from "../../domain/tables/knowledge-query.ts";
import { entriesText, readerFor } from "../../engine/operations/knowing.ts";
import { defineTool, type ToolContext } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "knowledge_delete",
  set: "librarian",
  command: "knowledge delete",
  examples: ["user:opening-hours", "manuals/boiler.md"],
  topic: "memory",
  description: "Deletes all knowledge from sources that begin with a text; of what may be read here alone.",
  help: "Deletes what the agent knows from a source, or from all that begin so. The file itself stays.",
  wording: "Delete the knowledge from {sourcePrefix}",
  kind: "delete",
  isRepeatable: true,
  input: z.object({
    sourcePrefix: z.string().trim().min(1).meta({
      description: "Beginning of the sources, such as fileChunk:rooms:/!a:b/plan.md, or a path",
      help: "The source, or its beginning, as `knowledge sources` shows it; or the path of a file, or the address of a page",
    }),
  }),
  async run({ sourcePrefix }, context) {
    const { knowledge, level } = context;
    const removed = await knowledge.remove(readerFor(context, level), choose(sourcePrefix, context));
    if (removed.length === 0) return { result: `No knowledge here comes from ${sourcePrefix}.` };
    return { result: `${entriesText(removed.length)} ${removed.length === 1 ? "is" : "are"} deleted.` };
  },
});

/** Sources that begin with the text; where it is an address, those of the page, and where a path, of the file or folder. */
function choose(text: string, { agent, roomId }: ToolContext): SourceChoice {
  if (/^(?:user|web|file\w+)(?::|$)/.test(text)) return { prefixes: [text] };
  const page = isWebAddress(text) ? pageSourcePrefix(text) : undefined;
  if (page !== undefined) return { prefixes: [page] };
  const path = fromShare(text, folderHere(agent.name, roomId)).replace(/\/+$/, "");
  return {
    prefixes: [text, `fileChunk:${path}[`, `fileChunk:${path}/`, `fileSummary:${path}/`],
    exact: [`fileSummary:${path}`],
  };
}
