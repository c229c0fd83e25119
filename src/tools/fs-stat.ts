import { z } from "zod";
import { defineTool } from "../agent/tool.ts";
import { eventTime } from "../context/time.ts";
import { formatPath } from "../vfs/path.ts";
import { sizeText } from "../vfs/tree.ts";

export const tool = defineTool({
  name: "FS_Stat",
  set: "core",
  command: "stat",
  aliases: ["file_stats"],
  examples: ["rooms:/!abc:example.org/notes.md"],
  description:
    "Tells what is known of a file: type, size, owner, version, dates, and the versions that can be restored.",
  kind: "read",
  repeatable: true,
  input: z.object({ path: z.string().min(1).describe("The file or folder, as share:/path") }),
  async run({ path }, { files }) {
    const stat = await files.stat(path);
    const lines = [
      formatPath(stat),
      `type: ${stat.contentType}`,
      ...(stat.version > 0 ? [`size: ${sizeText(stat.size)}`, `owner: ${stat.owner}`, `version: ${stat.version}`] : []),
      ...(stat.tainted ? ["tainted: it holds what people wrote whom nobody here answers for"] : []),
      `created: ${eventTime(stat.createdAt)}`,
      `updated: ${eventTime(stat.updatedAt)}`,
      ...stat.versions.map(
        (old) =>
          `kept version ${old.version}: ${sizeText(old.size)}, written ${eventTime(old.writtenAt)}, until ${eventTime(old.endedAt)}`,
      ),
    ];
    return { result: lines.join("\n"), verbatim: true };
  },
});
