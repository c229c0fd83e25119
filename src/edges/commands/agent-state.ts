import { z } from "zod";
import type { AgentName } from "../../base/lib/ids.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import { changeText } from "../../engine/control/change.ts";
import { type CommandContext, defineCommand } from "../../engine/control/define-command.ts";

const name = z.string().describe("The agent's name, such as helper");

const record = ({ audit, event }: CommandContext, agent: string, before: string, after: string) =>
  audit.record({ key: event.eventId, actor: event.sender, subject: `agent ${agent}`, before, after });

export const commands = [
  defineCommand({
    command: "agent pause",
    examples: ["helper"],
    topic: "agents",
    description: "Pauses an agent: it stops its work, and wakes for nothing until it is resumed.",
    where: "control",
    level: "admin",
    input: z.object({ name }),
    async run(given, context) {
      const agent = await requireAgent(context.directory, given.name);
      const row = await record(context, agent.name, agent.pausedAt === null ? "at work" : "paused", "paused");
      await context.lifecycle.pause(agent.name, context.event.sender);
      return changeText(row);
    },
  }),
  defineCommand({
    command: "agent resume",
    examples: ["helper"],
    topic: "agents",
    description: "Ends an agent's pause. Messages that came meanwhile are history, and are not answered.",
    where: "control",
    level: "admin",
    input: z.object({ name }),
    async run(given, context) {
      const agent = await requireAgent(context.directory, given.name);
      const row = await record(context, agent.name, agent.pausedAt === null ? "at work" : "paused", "at work");
      await context.lifecycle.resume(agent.name);
      return changeText(row);
    },
  }),
  defineCommand({
    command: "agent delete",
    examples: ["helper", "helper --erase"],
    topic: "agents",
    description:
      "Deletes an agent: it leaves its rooms, and its user is deactivated for ever. Its files and all else that it knew are kept, unless you erase them.",
    where: "control",
    level: "admin",
    input: z.object({
      name,
      erase: z.boolean().optional().describe("Also deletes all that the agent knew, and hides its messages"),
    }),
    isNamedLast: true,
    async run({ name, erase = false }, context) {
      const { audit, directory, event, lifecycle } = context;
      const known = await audit.find(event.eventId);
      const agent = known ? await directory.find(name as AgentName) : await requireAgent(directory, name);
      const row = await record(context, name, agent?.userId ?? name, erase ? "deleted and erased" : "deleted");
      if (agent) await lifecycle.remove(agent, event.sender, erase);
      return changeText(row);
    },
  }),
];
