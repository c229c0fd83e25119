import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "Schedule_Remove",
  set: "core",
  command: "schedule remove",
  examples: ["3"],
  topic: "schedule",
  description: "Removes what is scheduled.",
  help: "Removes a schedule: it does not wake the agent any more.",
  kind: "delete",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ id: z.int().min(1).meta({ help: "Number of the schedule" }) }),
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
