import { z } from "zod";
import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand } from "../../engine/control/define-command.ts";

const time = (at: Date | null): string => at?.toISOString().replace(/\.\d+Z$/, "Z") ?? "never";

export const commands = [
  defineCommand({
    command: "encryption",
    examples: ["helper", "helper reset"],
    topic: "agents",
    description: "Shows the device with which an agent reads and writes in encrypted rooms, or gives it another.",
    where: "anywhere",
    level: "admin",
    input: z.object({
      name: z.string().describe("The agent's name, such as helper"),
      action: z.enum(["reset"], "reset").optional().describe("`reset` makes a new device under the same identity"),
    }),
    positional: ["action"],
    async run({ action, name }, { audit, devices, directory, event }) {
      const { userId } = await requireAgent(directory, name);
      if (action === "reset") {
        const key = { key: event.eventId, actor: event.sender, subject: `device of ${name}` };
        const before = (await devices.find(userId))?.deviceId ?? "none";
        const known = await audit.find(event.eventId);
        if (!known) await devices.renew(userId);
        const after = (await devices.find(userId))?.deviceId ?? "none";
        return changeText(await audit.record({ ...key, before, after }));
      }
      const device = await devices.find(userId);
      if (!device) return `${name} has no device for encrypted rooms yet.`;
      const { deviceId, pulledAt, publishedAt, renewedAt, waiting } = device;
      return [
        `- device: ${inlineCode(deviceId)}, ${publishedAt ? `published ${time(publishedAt)}` : "not published yet"}`,
        `- fingerprint: ${inlineCode(await devices.fingerprint(userId))}`,
        `- made in place of an older one: ${time(renewedAt)}`,
        `- last message to the device: ${time(pulledAt)}`,
        `- events that wait for a key: ${waiting}`,
      ].join("\n");
    },
  }),
];
