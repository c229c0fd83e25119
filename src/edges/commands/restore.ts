import { z } from "zod";
import { digest } from "../../base/lib/ids.ts";
import { defineAgentCommand } from "../../engine/control/define-command.ts";
import { completePaths } from "../../engine/operations/operation.ts";
import { filesFor } from "../../engine/operations/tool-context.ts";

export const commands = [
  defineAgentCommand({
    command: "restore",
    examples: ["notes.md 3"],
    topic: "files",
    description: "Brings back a former version of a file that was overwritten or deleted. `!stat` lists the versions.",
    level: "operate",
    input: z.object({
      path: z.string().min(1).describe("The file: notes.md in this room, or share:/path"),
      version: z.int32().min(1).optional().describe("The version to bring back; without it the newest that is kept"),
    }),
    positional: ["version"],
    async run({ path, version }, { agent, event, files, level }) {
      const { eventId, roomId, sender } = event;
      const key = digest("restore", eventId);
      const origin = { agent, roomId, by: "person" as const, requesters: [sender], sources: [roomId], taint: [], key };
      const { path: whole } = completePaths({ paths: ["path"] }, { path }, { agent: agent.name, roomId });
      const here = filesFor(files, origin, level);
      const restored = await here.restore(whole, version);
      return `${here.named(restored.path)} is as it was; this is version ${restored.version}.`;
    },
  }),
];
