import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const charactersMax = 64_000;

export const tool = defineTool({
  name: "read_file",
  set: "sandbox",
  isSpareFor: "core",
  examples: ["app.js"],
  topic: "sandbox",
  description: `Reads a text file of the computer, up to ${charactersMax} characters.`,
  wording: "Read {path} of the computer",
  kind: "read",
  isRepeatable: true,
  paths: ["path"],
  pathsIn: "sandbox",
  isPathLast: true,
  input: z.object({ path: z.string().min(1).meta({ description: "In /workspace", help: "The file, in /workspace" }) }),
  async run({ path }, { files }) {
    const { text, contentType, size } = await files.read(path);
    if (text === null) throw new UserError(`${files.named(path)} is no text: it is ${contentType} of ${size} bytes.`);
    const more = text.length - charactersMax;
    const result = more > 0 ? `${text.slice(0, charactersMax)}\n[${more} more characters are left out]` : text;
    return { result, isVerbatim: true };
  },
});
