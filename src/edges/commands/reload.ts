import { defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "reload",
    description:
      "Reads the configuration again, in every process. A file with mistakes is refused, and the last good one stays.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { audit, event, reload }) {
      const lines = await reload(event.eventId);
      if (lines.length === 0) return "Nothing is different.";
      const after = lines.join("\n");
      await audit.record({ key: event.eventId, actor: event.sender, subject: "configuration", before: null, after });
      return lines.map((line) => `- ${line}`).join("\n");
    },
  }),
];
