import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { includesLevel } from "../agent/permissions.ts";
import { defineTool } from "../agent/tool.ts";
import { UserError } from "../lib/errors.ts";

export const tool = defineTool({
  name: "Schedule_Remove",
  set: "core",
  command: "schedule remove",
  examples: ["3"],
  description: "Removes what is scheduled: you are not woken by it any more.",
  kind: "delete",
  own: true,
  repeatable: true,
  input: z.object({ id: z.int().min(1).describe("The number of the schedule") }),
  async run({ id }, { agent, level, requesters, roomId, schedules }) {
    const schedule = (await schedules.list(seatOf(agent, roomId))).find((one) => one.id === id);
    if (!schedule) throw new UserError(`There is no schedule ${id} here.`);
    const { madeBy } = schedule;
    if (!requesters.includes(madeBy) && !includesLevel(level, "operate"))
      throw new UserError(
        `Schedule ${id} is of ${madeBy}: they can remove it, and those who have the right to operate.`,
      );
    await schedules.remove(agent.name, id);
    return { result: `Schedule ${id} is removed.` };
  },
});
