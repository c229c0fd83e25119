import { z } from "zod";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "audit",
    description: "Lists who changed what, when, from what, to what; the newest change comes first.",
    where: "control",
    level: "admin",
    input: z.object({
      number: z.int().min(1).max(100).optional().describe("How many changes; without it 20"),
    }),
    positional: ["number"],
    async run({ number = 20 }, { audit }) {
      const lines = (await audit.newest(number)).map(
        (row) => `- ${row.at.toISOString().slice(0, 19)}Z ${row.actor}: ${changeText(row)}`,
      );
      return lines.join("\n") || "Nothing has been changed yet.";
    },
  }),
];
