import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { formatPath } from "../../domain/files/path.ts";
import { sectionsOf } from "../../domain/files/sections.ts";
import { isPermitted } from "../../engine/operations/gate.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const charactersMax = 64_000;

export const tool = defineTool({
  name: "FS_Index",
  set: "core",
  command: "index",
  aliases: ["file_index"],
  examples: ["report.md"],
  topic: "files",
  description: "Cuts a text file into sections and keeps each as knowledge; where you may not, it only counts them.",
  help: "Cuts a text file into sections and keeps each as knowledge of the agent. If you may not create anything, it only counts the sections.",
  wording: "Keep {path} as knowledge",
  kind: "read",
  beside: false,
  carries: ({ path }) => path,
  repeatable: true,
  paths: ["path"],
  pathLast: true,
  input: z.object({ path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }) }),
  async run({ path }, context) {
    const { agent, files, knowledge } = context;
    const file = await files.read(path);
    if (file.text === null) throw new UserError(`${files.named(path)} is no text: it is ${file.contentType}.`);
    const sections = sectionsOf(beginning(file.text, charactersMax));
    const of = file.text.length > charactersMax ? `the first ${charactersMax} characters of ` : "";
    const count = `${sections.length} ${sections.length === 1 ? "entry" : "entries"} of knowledge`;
    if (!(await isPermitted("create", context))) {
      return {
        result: `${of}${files.named(file)} would make ${count}. None was made: you may not create anything here.`,
      };
    }
    const prefix = `fileChunk:${formatPath(file)}[`;
    const entries = new Map(sections.map((section, index) => [`${prefix}${index}]`, section]));
    const origin = { agent: agent.name, wall: files.sources[0] ?? null, eventId: file.eventId };
    await knowledge.keep(entries, origin, prefix);
    return { result: `${of}${files.named(file)} made ${count}.` };
  },
});
