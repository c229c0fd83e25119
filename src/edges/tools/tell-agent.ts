import { z } from "zod";
import { agentName } from "../../adapters/matrix/message.ts";
import { HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { requireAgent } from "../../domain/agents/require-agent.ts";
import { requireReachable } from "../../engine/operations/letter.ts";
import { defineTool, type PlaceContext } from "../../engine/operations/tool.ts";

const recipient = async (name: string, { agent, agents }: Pick<PlaceContext, "agent" | "agents">): Promise<Agent> =>
  requireReachable(
    await requireAgent(agents, agentName(name as UserId, splitUserId(agent.userId).server) ?? name),
    agent,
  );

export const tool = defineTool({
  name: "TellAgent",
  set: "core",
  command: "tell",
  examples: ["scribe The meeting was moved to Friday"],
  topic: "speaking",
  description:
    "Tells another agent something in its home, where only its owner sees it. Its answer, if any, reaches you in yours.",
  help: "Has the agent send a message to another agent's home, where only the owner of that agent sees it.",
  wording: "Tell the agent {agent} something",
  kind: "create",
  sendsTo: async ({ agent }, context) => (await recipient(agent, context)).owner as string as RoomId,
  // In a tainted turn, too: only its owner hears it, who is here.
  reachesOutside: async ({ agent }, context) => {
    const { owner } = await recipient(agent, context);
    const here = context.roomId === HOME ? [context.agent.owner] : await context.rooms.humans(context.roomId);
    return !here.includes(owner);
  },
  isRepeatable: true,
  isImmediate: true,
  input: z.object({
    agent: z
      .string()
      .trim()
      .min(1)
      .meta({ description: "Name, or full user id", help: "The other agent: its name, or its full user id" }),
    text: z.string().trim().min(1).max(16_000).meta({
      help: "The message, with everything that the other agent has to know",
    }),
  }),
  async run({ agent, text }, context) {
    const to = await recipient(agent, context);
    const wake = await context.letter(to, text);
    return { result: `${to.name} is told, and works on it at its home.`, wakes: [wake] };
  },
});
