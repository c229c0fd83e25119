import { z } from "zod";
import { permits } from "../agent/mode.ts";
import { defineTool } from "../agent/tool.ts";
import { beginning } from "../context/measure.ts";
import { UserError } from "../lib/errors.ts";
import { formatPath } from "../vfs/path.ts";
import { sectionsOf } from "../vfs/sections.ts";

const charactersMax = 64_000;

export const tool = defineTool({
  name: "FS_Index",
  set: "core",
  command: "index",
  aliases: ["file_index"],
  examples: ["rooms:/!abc:example.org/report.md"],
  description:
    "Cuts a text file into sections and keeps each as knowledge. Where you may not create anything, it only tells how many there would be.",
  kind: "read",
  repeatable: true,
  input: z.object({ path: z.string().min(1).describe("The file, as share:/path") }),
  async run({ path }, context) {
    const { agent, files, knowledge } = context;
    const file = await files.read(path);
    if (file.text === null) throw new UserError(`${path} is no text: it is ${file.contentType}.`);
    const sections = sectionsOf(beginning(file.text, charactersMax));
    const of = file.text.length > charactersMax ? `the first ${charactersMax} characters of ` : "";
    const count = `${sections.length} ${sections.length === 1 ? "entry" : "entries"} of knowledge`;
    if (!(await permits("create", context))) {
      return {
        result: `${of}${formatPath(file)} would make ${count}. None was made: you may not create anything here.`,
      };
    }
    const prefix = `fileChunk:${formatPath(file)}[`;
    const entries = new Map(sections.map((section, index) => [`${prefix}${index}]`, section]));
    const origin = { agent: agent.name, wall: files.sources[0] ?? null, eventId: file.eventId };
    await knowledge.keep(entries, origin, prefix);
    return { result: `${of}${formatPath(file)} made ${count}.` };
  },
});
