import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { scheduleElement } from "../../domain/plans/schedule-element.ts";
import { ringChain } from "../../domain/plans/schedules.ts";
import { nextTime, splitTime, timeAt } from "../../domain/plans/when.ts";
import { defineTool } from "../../engine/operations/tool.ts";

/** Nothing that goes on by itself does so more often than once a minute. */
const soonestMs = 60_000;

export const tool = defineTool({
  name: "Schedule",
  set: "core",
  command: "schedule",
  examples: ["0 9 * * 1-5 Wish everybody a good morning", "2030-12-24T18:00 Merry Christmas"],
  topic: "schedule",
  description: "Wakes you in this conversation with a text, once (at) or again and again (cron), in your time zone.",
  help: "Wakes the agent in this room with a text: once, at a date and time, or again and again (cron: minute, hour, day of month, month, day of week). You may write the time before the text. It is in the agent's time zone.",
  wording: ({ at, cron }) =>
    cron !== undefined ? "Wake me at the times {cron}" : at !== undefined ? "Wake me at {at}" : "Wake me",
  kind: "create",
  isRepeatable: true,
  input: z.object({
    cron: z.string().describe("Again and again: minute, hour, day of month, month, day of week").optional(),
    at: z.string().describe("Once, such as 2026-12-24T18:00").optional(),
    text: z.string().trim().min(1).max(4_000).meta({ help: "What the agent is told then" }),
  }),
  async run(input, context) {
    const { agent, by, chain, key, now, onBehalfOf, roomId, schedules, sources, taint } = context;
    const known = await schedules.find(key);
    if (known) return { result: scheduleElement(known) };
    const { cron, at, text } = input.cron === undefined && input.at === undefined ? splitTime(input.text) : input;
    if ((cron === undefined) === (at === undefined))
      throw new UserError("Say when: cron, such as 0 9 * * 1-5, or at, such as 2026-12-24T18:00; one of them.");
    if (text === "") throw new UserError("Say what the agent is to be told then: no text stands behind the time.");
    const { timeZone } = agent.settings;
    const nextAt = cron === undefined ? timeAt(at ?? "", timeZone, now) : nextTime(cron, timeZone, now);
    if (by === "model" && chain.startsWith(ringChain) && nextAt.getTime() < now.getTime() + soonestMs)
      throw new UserError("In a turn that a schedule began, the next may come a minute later at the soonest.");
    const plan = { cron: cron ?? null, timeZone, text, nextAt };
    const made = await schedules.add({ ...plan, key, agent: agent.name, roomId, madeBy: onBehalfOf, sources, taint });
    return { result: scheduleElement(made) };
  },
});
