import { z } from "zod";
import { eventTime } from "../../base/prompt/time.ts";
import { sizeText } from "../../domain/files/tree.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Stat",
  set: "core",
  command: "stat",
  aliases: ["file_stats"],
  examples: ["notes.md"],
  topic: "files",
  description: "Tells type, size, owner, dates and versions of a file.",
  help: "Shows what is known of a file: type, size, owner, version, dates, and the versions that can be restored.",
  wording: "Look at what is known of {path}",
  kind: "read",
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({
    path: z.string().min(1).meta({ help: "The file or folder: notes.md in this room, or share:/path" }),
  }),
  async run({ path }, { files }) {
    const stat = await files.stat(path);
    const lines = [
      files.named(stat),
      `type: ${stat.contentType}`,
      ...(stat.version > 0 ? [`size: ${sizeText(stat.size)}`, `owner: ${stat.owner}`, `version: ${stat.version}`] : []),
      ...(stat.isTainted ? ["tainted: it holds what people wrote whom nobody here answers for"] : []),
      `created: ${eventTime(stat.createdAt)}`,
      `updated: ${eventTime(stat.updatedAt)}`,
      ...stat.versions.map(
        (old) =>
          `kept version ${old.version}: ${sizeText(old.size)}, written ${eventTime(old.writtenAt)}, replaced ${eventTime(old.endedAt)}`,
      ),
    ];
    return { result: lines.join("\n"), isVerbatim: true };
  },
});
