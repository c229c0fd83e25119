import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { tellPassages } from "../../base/prompt/recalled.ts";
import { parseGlob } from "../../domain/files/glob.ts";
import { readerFor } from "../../engine/operations/knowing.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const limitMost = 50;

export const tool = defineTool({
  name: "knowledge_search",
  set: "librarian",
  command: "knowledge search",
  aliases: ["knowledge"],
  examples: ["when are invoices paid", "--path manuals/**/*.md --limit 3 the warranty"],
  topic: "memory",
  description: "Finds the passages of your knowledge that fit best, by meaning and words, each with its source.",
  help: "Finds what the agent knows from files and people, the best first, each with its source.",
  wording: "Look in the knowledge for {query}",
  kind: "read",
  isRepeatable: true,
  paths: ["path"],
  input: z.object({
    query: z.string().trim().min(1).max(1_000).describe("What to look for, as a question or in keywords"),
    limit: z.int().min(1).max(limitMost).default(10).describe(`How many, up to ${limitMost}`),
    sourcePrefix: z
      .string()
      .trim()
      .min(1)
      .optional()
      .describe("Only of sources that begin so, such as user or fileSummary:"),
    path: z.string().trim().min(1).optional().meta({
      description: "Only of this file, folder, or pattern as for FS_Find",
      help: "Only of this file, of a folder, or of a pattern such as manuals/**/*.md",
    }),
  }),
  async run({ limit, path, query, sourcePrefix }, context) {
    const { agent, by, files, knowledge, level } = context;
    const only = path === undefined ? undefined : { share: parseGlob(path).share, paths: [] as string[] };
    if (only && path !== undefined) only.paths.push(...(await files.list(path)).map((file) => file.path));
    if (only?.paths.length === 0) throw new UserError(`No file fits ${path}.`);
    const found = await knowledge.find(readerFor(context, level), { text: query, limit, sourcePrefix, files: only });
    return {
      ...tellPassages(found, { by, timeZone: agent.settings.timeZone }),
      sources: found.flatMap(({ sources }) => sources),
      taint: found.flatMap(({ taint }) => taint),
    };
  },
});
