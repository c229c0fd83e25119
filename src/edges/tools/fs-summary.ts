import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { originOfFile } from "../../domain/files/as-knowledge.ts";
import { formatPath } from "../../domain/files/path.ts";
import { keepingOf } from "../../engine/operations/knowing.ts";
import { canOffer, offerSummary } from "../../engine/operations/knowledge-offer.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const charactersMax = 64_000;
const question = "What does this text say? Summarise it in at most 200 words: what it is, and what matters in it.";

export const tool = defineTool({
  name: "FS_Summary",
  set: "core",
  command: "summary",
  aliases: ["file_summary"],
  examples: ["report.md", "--keep report.md"],
  topic: "files",
  description: "Summarises a text file, up to 64,000 characters. People see it, and are asked whether to keep it.",
  help: "Summarises a text file, up to 64,000 characters of it. The agent keeps the summary as knowledge if you put a ✅ below its question, or write --keep.",
  wording: ({ keep }) => (keep ? "Summarise {path}, {keep:and keep that as knowledge}" : "Summarise {path}"),
  kind: async ({ keep }) => (keep ? "create" : "read"),
  runsBeside: ({ keep }) => !keep,
  carries: ({ path }) => path,
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({
    keep: z
      .boolean()
      .meta({
        description: "true: keep it at once",
        help: "Keeps the summary as knowledge of the agent",
      })
      .optional(),
    quiet: z
      .boolean()
      .meta({
        description: "true: nobody sees it or is asked",
        help: "Does not ask whether to keep it",
      })
      .optional(),
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
  }),
  async run({ path, keep, quiet }, context) {
    const { files, knowledge, submodel } = context;
    const file = await files.read(path);
    if (file.text === null) throw new UserError(`${files.named(path)} is no text: it is ${file.contentType}.`);
    const text = await submodel.ask(question, beginning(file.text, charactersMax));
    const cut = file.text.length > charactersMax ? `\n[Of the first ${charactersMax} characters]` : "";
    const entry = { source: `fileSummary:${formatPath(file)}`, text };
    const origin = originOfFile(keepingOf(context), file, await files.sourcesOf(path));
    if (keep) {
      await knowledge.kept.keep([entry], origin);
      return { result: `${text}${cut}\n[Kept as knowledge: ${entry.source}]`, isVerbatim: true };
    }
    if (quiet || !canOffer(context)) return { result: `${text}${cut}\n[Not kept as knowledge]`, isVerbatim: true };
    const offer = await offerSummary(entry, origin, context);
    const result = `${offer.text}${cut}\n[Not kept as knowledge yet: people have been shown it and asked; a ✅ keeps it]`;
    return { result, outbox: offer.outbox, isVerbatim: true };
  },
});
