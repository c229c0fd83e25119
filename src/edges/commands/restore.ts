import { z } from "zod";
import { digest } from "../../base/lib/ids.ts";
import { defineAgentCommand } from "../../engine/control/define-command.ts";
import { filesFor } from "../../engine/operations/tool-context.ts";

export const commands = [
  defineAgentCommand({
    command: "restore",
    examples: ["rooms:/!abc:example.org/notes.md 3"],
    topic: "files",
    description: "Brings back what a file was before it was overwritten or deleted; `!stat` lists the versions.",
    level: "operate",
    input: z.object({
      path: z.string().min(1).describe("The file, as share:/path"),
      version: z.int32().min(1).optional().describe("The version to bring back; without it the newest that is kept"),
    }),
    positional: ["version"],
    async run({ path, version }, { agent, event, files, level }) {
      const { eventId, roomId, sender } = event;
      const key = digest("restore", eventId);
      const origin = { agent, roomId, by: "person" as const, requesters: [sender], sources: [roomId], taint: [], key };
      const restored = await filesFor(files, origin, level).restore(path, version);
      return `${restored.path} is as it was; this is version ${restored.version}.`;
    },
  }),
];
