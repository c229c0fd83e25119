import { z } from "zod";
import { isFolder } from "../../domain/files/content.ts";
import { hiddenLines } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Find",
  set: "core",
  command: "find",
  aliases: ["file_search"],
  examples: ["rooms:/**/*.md", "--limit 10 users:/**"],
  topic: "files",
  description:
    "Finds files by a pattern of paths: * and ? within a name, ** over folders, [a-z], {one,other}; such as rooms:/**/*.md.",
  help: "Finds files by a pattern of paths: `*` and `?` within a name, `**` over folders, `[a-z]`, `{one,other}`; such as `rooms:/**/*.md`.",
  wording: "List the files {glob}",
  kind: "read",
  isRepeatable: true,
  paths: ["glob"],
  isPathLast: true,
  input: z.object({
    limit: z.int().min(1).max(1_000).default(40).meta({ help: "How many paths to list at most" }),
    glob: z.string().min(1).meta({ help: "The pattern: `*.md` in this room, or `share:/pattern`" }),
  }),
  async run({ glob, limit }, { files }) {
    const listed = await files.listAll(glob);
    const found = listed.files.filter((file) => !isFolder(file));
    const hidden = hiddenLines(listed.hidden);
    if (found.length === 0)
      return { result: [`No file fits ${files.named(glob)}.`, ...hidden].join("\n"), isVerbatim: true };
    const more = found.length - limit;
    const lines = found.slice(0, limit).map((file) => files.named(file));
    return { result: [...lines, ...(more > 0 ? [`[${more} more]`] : []), ...hidden].join("\n"), isVerbatim: true };
  },
});
