import { z } from "zod";
import { sizeText } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "write_file",
  set: "sandbox",
  isSpareFor: "core",
  examples: ["app.js console.log(1)"],
  topic: "sandbox",
  description: "Writes a text file of the computer, and the folders on its way; replaces what is there.",
  wording: "Write {path} in the computer",
  kind: "create",
  isRepeatable: true,
  paths: ["path"],
  pathsIn: "sandbox",
  input: z.object({
    path: z
      .string()
      .min(1)
      .meta({ description: "In /workspace", help: "The file, in /workspace; folders on the way are made" }),
    content: z.string().meta({ help: "The text" }),
  }),
  async run({ path, content }, { files }) {
    const written = await files.write(path, content);
    return { result: `${files.named(written.path)} was written: ${written.contentType}, ${sizeText(written.size)}.` };
  },
});
