import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { isTextType } from "../../domain/files/content.ts";
import { formatPath } from "../../domain/files/path.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_OpenFile",
  set: "core",
  command: "open",
  examples: ["--line 120 report.md"],
  topic: "files",
  description: "Opens a text file in a window, always as it is now.",
  help: "Opens a text file in a window on the agent's desk. The agent sees a part of it for some turns, always as the file is now.",
  wording: "Open {path}",
  kind: "read",
  runsBeside: false,
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({
    line: z.int32().min(1).optional().meta({ help: "The line at which the window begins" }),
    title: z.string().trim().min(1).max(200).optional().meta({ help: "The title of the window" }),
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
  }),
  async run({ path, line, title }, { by, files, windows }) {
    const file = await files.info(path);
    if (!isTextType(file.contentType))
      throw new UserError(`${files.named(path)} is no text: it is ${file.contentType} of ${file.size} bytes.`);
    const { said, shown } = await windows.open({
      srcType: "file",
      src: formatPath(file),
      contentType: file.contentType,
      sources: files.sources,
      title,
      top: line,
    });
    return { result: by === "person" && shown ? shown : said };
  },
});
