import type { Agent } from "../agent/agent.ts";
import { type CommandContext, defineCommand, noInput } from "../agent/command.ts";
import { modeIn } from "../agent/mode.ts";
import type { Operation } from "../database/operations.ts";

export const commands = [
  defineCommand({
    command: "status",
    description: "What the agent is doing, with which model and mode.",
    where: "room",
    level: "chat",
    input: noInput,
    run: async (_, context) =>
      (await Promise.all(context.agents.map((agent) => statusOf(agent, context)))).join("\n\n"),
  }),
];

async function statusOf(seen: Agent, context: CommandContext): Promise<string> {
  const { event, operations, turns, directory, rooms, view, clock } = context;
  // Another command may just have changed what the router has seen.
  const agent = (await directory.find(seen.name)) ?? seen;
  const mode = modeIn(agent, await rooms.mode(event.roomId));
  const conversation = { agent: agent.name, roomId: event.roomId };
  const [open, under] = await Promise.all([turns.open(conversation), operations.open(conversation)]);
  const turn = open.find(({ state }) => state === "running");
  const seconds = turn ? Math.round((clock.now().getTime() - turn.startedAt.getTime()) / 1000) : 0;
  return [
    `**${agent.displayName}** (${agent.userId})`,
    `- model: ${view.modelOf(agent)}`,
    `- mode: ${mode}${mode === agent.settings.mode ? "" : ` (this room's; its own is ${agent.settings.mode})`}`,
    `- wakes by itself: ${agent.wakeUpTimerSeconds === null ? "never" : `after ${agent.wakeUpTimerSeconds} s without a turn`}`,
    turn ? `- at work here: turn ${turn.number} (${turn.reason}), for ${seconds} s` : "- at work here: no",
    ...under.filter(({ state }) => state === "asked").map(waitingText),
  ].join("\n");
}

const waitingText = ({ cardRoom, decision, expiresAt, id, roomId, tool }: Operation): string => {
  if (decision === "approved") return `- operation ${id} (${tool}) was approved, and is about to begin`;
  const until = expiresAt ? `, until ${expiresAt.toISOString().slice(0, 19)}Z` : "";
  return `- operation ${id} (${tool}) waits for approval${cardRoom === roomId ? "" : " in the control room"}${until}`;
};
