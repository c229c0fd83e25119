import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const charactersMax = 64_000;

export const tool = defineTool({
  name: "FS_Read",
  set: "core",
  command: "cat",
  aliases: ["file_read"],
  examples: ["agents:/helper/persona.md"],
  topic: "files",
  description: `Reads a text file, up to ${charactersMax} characters. For what is long, or looked at again, FS_OpenFile is better.`,
  help: "Shows a text file, up to 64,000 characters of it.",
  wording: "Read {path}",
  kind: "read",
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({ path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }) }),
  async run({ path }, { files }) {
    const { text, contentType, size } = await files.read(path);
    if (text === null) throw new UserError(`${files.named(path)} is no text: it is ${contentType} of ${size} bytes.`);
    const more = text.length - charactersMax;
    const result = more > 0 ? `${text.slice(0, charactersMax)}\n[${more} more characters are left out]` : text;
    return { result, isVerbatim: true };
  },
});
