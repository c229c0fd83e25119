import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { digest, type RoomId } from "../../base/lib/ids.ts";
import { filesThatFit } from "../../domain/files/as-knowledge.ts";
import { parseGlob } from "../../domain/files/glob.ts";
import { formatPath } from "../../domain/files/path.ts";
import { entriesText, keepingOf, knowFile } from "../../engine/operations/knowing.ts";
import { defineTool, type ToolContext } from "../../engine/operations/tool.ts";

/** Files that one call takes in. */
const filesMost = 200;
const textMost = 4_000;
const titleMost = 200;

export const tool = defineTool({
  name: "knowledge_add",
  set: "librarian",
  command: "knowledge add",
  examples: ["Invoices go to the cellar office.", "--path manuals/**/*.md", "--title opening-hours From nine to five."],
  positional: ["text"],
  topic: "memory",
  description: "Adds a text, or all text files that fit a pattern, to your knowledge, where knowledge_search finds it.",
  help: "Adds a text, or text files, to the knowledge of the agent. It is shown only where everybody may read the file.",
  wording: ({ path }) => (path === undefined ? "Keep {text} as knowledge" : "Keep {path} as knowledge"),
  kind: "create",
  carries: ({ path }) => path,
  isRepeatable: true,
  paths: ["path"],
  input: z.object({
    path: z
      .string()
      .trim()
      .min(1)
      .meta({
        description: "In place of text: a text file, a folder, or a pattern as for FS_Find",
        help: "In place of a text: a file, a folder, or a pattern such as manuals/**/*.md",
      })
      .optional(),
    title: z
      .string()
      .trim()
      .min(1)
      .max(titleMost)
      .meta({
        description: "Name for the text; a text of the same name is replaced",
        help: "A name for the text; a text that has the name already is replaced",
      })
      .optional(),
    text: z
      .string()
      .trim()
      .min(1)
      .max(textMost)
      .meta({ description: "Text that can be understood by itself", help: "The text" })
      .optional(),
  }),
  async run({ path, text, title }, context) {
    if ((path === undefined) === (text === undefined)) throw new UserError("Give either a text or a path.");
    if (path !== undefined && title !== undefined)
      throw new UserError("A title is for a text: files have their names.");
    return path === undefined ? addText(text ?? "", title, context) : addFiles(path, context);
  },
});

async function addText(text: string, title: string | undefined, context: ToolContext) {
  const { knowledge, roomId, sources, taint } = context;
  const source = `user:${title ?? digest(text).slice(0, 10)}`;
  const from: RoomId[] = [...new Set([...sources, roomId])];
  const origin = { ...keepingOf(context), title: title ?? "", sources: from, taint, eventId: null };
  await knowledge.kept.keep([{ source, text }], origin);
  return { result: `It is knowledge now, as ${source}.` };
}

async function addFiles(path: string, context: ToolContext) {
  const { files, signal } = context;
  const isOne = parseGlob(path).isLiteral;
  const listed = await filesThatFit(files, path);
  if (listed.length > filesMost)
    throw new UserError(`${listed.length} files fit: at most ${filesMost} are taken in at once.`);
  if (listed.length === 0 && isOne) return { result: `${await addFile(path, context)}.` };
  if (listed.length === 0) throw new UserError(`No file fits ${path}.`);
  const lines: string[] = [];
  for (const file of listed) {
    signal.throwIfAborted();
    lines.push(await addFile(formatPath(file), context, listed.length > 1));
  }
  return { result: lines.join("\n"), isVerbatim: true };
}

/** @param goesOn a file that is no text is passed over */
async function addFile(path: string, context: ToolContext, goesOn = false): Promise<string> {
  const { files } = context;
  try {
    const { entries, isCut, keep } = await knowFile(path, context);
    await keep();
    return `${files.named(path)}: ${entriesText(entries)}${isCut ? ", of its beginning" : ""}`;
  } catch (error) {
    if (goesOn && error instanceof UserError) return `${files.named(path)} was passed over: ${error.message}`;
    throw error;
  }
}
