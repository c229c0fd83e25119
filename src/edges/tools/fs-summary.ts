import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { formatPath } from "../../domain/files/path.ts";
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
  description:
    "Summarises a text file, up to 64,000 characters of it. Show people the summary, and ask whether to keep it as knowledge.",
  help: "Summarises a text file, up to 64,000 characters of it. With --keep the agent keeps the summary as knowledge.",
  wording: ({ keep }) => (keep ? "Summarise {path}, {keep:and keep that as knowledge}" : "Summarise {path}"),
  kind: async ({ keep }) => (keep ? "create" : "read"),
  beside: ({ keep }) => !keep,
  carries: ({ path }) => path,
  repeatable: true,
  paths: ["path"],
  pathLast: true,
  input: z.object({
    keep: z
      .boolean()
      .meta({
        description: "true: keep it as knowledge, where a person wants it",
        help: "Keeps the summary as knowledge of the agent",
      })
      .optional(),
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
  }),
  async run({ path, keep }, { agent, files, knowledge, submodel }) {
    const file = await files.read(path);
    if (file.text === null) throw new UserError(`${files.named(path)} is no text: it is ${file.contentType}.`);
    const summary = await submodel.ask(question, beginning(file.text, charactersMax));
    const cut = file.text.length > charactersMax ? `\n[Of the first ${charactersMax} characters]` : "";
    if (!keep) return { result: `${summary}${cut}\n[Not kept as knowledge: shall it be?]`, verbatim: true };
    const source = `fileSummary:${formatPath(file)}`;
    const origin = { agent: agent.name, wall: files.sources[0] ?? null, eventId: file.eventId };
    await knowledge.keep(new Map([[source, summary]]), origin);
    return { result: `${summary}${cut}\n[Kept as knowledge: ${source}]`, verbatim: true };
  },
});
