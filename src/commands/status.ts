import type { Agent } from "../agent/agent.ts";
import { type CommandContext, defineCommand, noInput } from "../agent/command.ts";
import { modeIn } from "../agent/mode.ts";

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

async function statusOf(seen: Agent, { event, turns, directory, rooms, view, clock }: CommandContext): Promise<string> {
  // Another command may just have changed what the router has seen.
  const agent = (await directory.find(seen.name)) ?? seen;
  const mode = modeIn(agent, await rooms.mode(event.roomId));
  const open = await turns.open({ agent: agent.name, roomId: event.roomId });
  const turn = open.find(({ state }) => state === "running");
  const seconds = turn ? Math.round((clock.now().getTime() - turn.startedAt.getTime()) / 1000) : 0;
  return [
    `**${agent.displayName}** (${agent.userId})`,
    `- model: ${view.modelOf(agent)}`,
    `- mode: ${mode}${mode === agent.settings.mode ? "" : ` (this room's; its own is ${agent.settings.mode})`}`,
    `- wakes by itself: ${agent.wakeUpTimerSeconds === null ? "never" : `after ${agent.wakeUpTimerSeconds} s without a turn`}`,
    turn ? `- at work here: turn ${turn.number} (${turn.reason}), for ${seconds} s` : "- at work here: no",
  ].join("\n");
}
