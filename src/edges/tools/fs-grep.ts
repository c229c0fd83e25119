import { z } from "zod";
import { beginning } from "../../base/prompt/measure.ts";
import { type Found, grep } from "../../domain/files/grep.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const matchesMax = 200;
const lineMax = 400;
const charactersMax = 32_000;

export const tool = defineTool({
  name: "FS_Grep",
  set: "core",
  command: "grep",
  aliases: ["text_search"],
  examples: ["--surrounding 2 rooms:/**/*.md (?i)deadline"],
  topic: "files",
  description: "Finds lines in text files by a regular expression (RE2).",
  wording: "Look for {regex} in {glob}",
  kind: "read",
  isRepeatable: true,
  paths: ["glob"],
  input: z.object({
    surrounding: z.int().min(0).max(20).default(0).meta({ help: "Lines to show before and after each" }),
    glob: z.string().min(1).meta({
      description: "Folder, or pattern as for FS_Find",
      help: "The files: a folder such as drafts in this room, or share:/path, or a pattern such as `rooms:/**/*.md`",
    }),
    regex: z.string().min(1).meta({
      description: "(?i) at its start ignores case",
      help: "The regular expression; (?i) at its start ignores case",
    }),
  }),
  async run({ glob, regex, surrounding }, { files, signal }) {
    const { found, filesSearched, isCut } = await grep(files, { glob, regex, surrounding, limit: matchesMax, signal });
    if (found.length === 0) return { result: `No line fits in ${filesSearched} files.`, isVerbatim: true };
    const text = found.map((one) => show({ ...one, path: files.named(one.path) })).join("\n\n");
    const shown = beginning(text, charactersMax);
    const left = isCut || shown !== text ? "\n[There is more: look with a narrower pattern or in fewer files]" : "";
    return { result: shown + left, isVerbatim: true };
  },
});

/** As `grep` writes it: a colon behind the number of a line that fits, a hyphen behind others, `--` where lines leap. */
const show = ({ path, lines }: Found): string => {
  const shown = lines.flatMap(({ number, text, matches }, index) => {
    const isLeap = index > 0 && lines[index - 1]?.number !== number - 1;
    const line = `${number}${matches ? ":" : "-"} ${beginning(text, lineMax)}${text.length > lineMax ? "…" : ""}`;
    return isLeap ? ["--", line] : [line];
  });
  return [path, ...shown].join("\n");
};
