import { z } from "zod";
import { modes } from "../../domain/agents/settings.ts";
import { requireLevel } from "../../domain/rights/permissions.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand } from "../../engine/control/define-command.ts";
import { modeIn } from "../../engine/operations/gate.ts";

const choices = [...modes, "agent"] as const;

export const commands = [
  defineCommand({
    command: "mode",
    examples: ["read"],
    description:
      "Shows which kinds of operations agents carry out here without asking, or sets it for this room. Each mode includes those before it.",
    where: "room",
    level: "chat",
    input: z.object({
      mode: z
        .enum(choices, `one of ${choices.join(", ")}`)
        .optional()
        .describe(`${modes.join(", ")}; or agent: each agent's own mode holds`),
    }),
    positional: ["mode"],
    async run({ mode }, { agents, audit, event, level, rooms }) {
      const { eventId: key, roomId, sender: actor } = event;
      const before = await rooms.mode(roomId);
      const after = mode === undefined ? before : mode === "agent" ? null : mode;
      const holding = agents.map(
        (agent) => `- ${agent.displayName}: \`${modeIn(agent, after)}\` (its own mode is \`${agent.settings.mode}\`)`,
      );
      if (mode === undefined) {
        const room = before === null ? "This room has no mode of its own." : `The mode of this room is \`${before}\`.`;
        return [room, ...holding].join("\n");
      }
      requireLevel(level, "operate");
      const subject = `mode of ${roomId}`;
      const row = await audit.record({ key, actor, subject, before: before ?? "agent", after: mode });
      await rooms.setMode(roomId, after);
      return [changeText(row), ...holding].join("\n");
    },
  }),
];
