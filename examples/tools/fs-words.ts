import { z } from "zod";
import { UserError } from "../../src/base/lib/errors.ts";
import { defineTool } from "../../src/engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Words",
  set: "core",
  command: "words",
  examples: ["notes.md"],
  description: "Counts the words of a text file.",
  wording: "Count the words of {path}",
  // It only reads, so it runs in every mode but `none`, and people need the right to `use`.
  kind: "read",
  // After a crash it may simply run again.
  isRepeatable: true,
  // People and models may write it without a share: `run` gets the whole path.
  paths: ["path"],
  input: z.object({ path: z.string().min(1).describe("The file: notes.md in this room, or share:/path") }),
  async run({ path }, { files }) {
    // `files` has the walls: it reads what those may read for whom the agent works, and notes the sources.
    const { text } = await files.read(path);
    if (text === null) throw new UserError(`${files.named(path)} is no text.`);
    return { result: `${text.match(/\S+/g)?.length ?? 0} words` };
  },
});
