import { z } from "zod";
import { element } from "../../base/lmml/element.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import { scheduleElement } from "../../domain/plans/schedule-element.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "Schedule_List",
  set: "core",
  command: "schedule list",
  topic: "schedule",
  description: "Lists what is scheduled here and in other rooms.",
  help: "Lists what is scheduled in this room, and in others that everybody here may read.",
  kind: "read",
  isOwn: true,
  isRepeatable: true,
  input: z.object({}),
  async run(_, { agent, roomId, schedules }) {
    const all = await schedules.list(seatOf(agent, roomId));
    if (all.length === 0) return { result: "Nothing is scheduled here." };
    return {
      result: element("schedules", {}, all.map(scheduleElement)),
      sources: all.flatMap((one) => [one.roomId, ...one.sources]),
      taint: all.flatMap(({ taint }) => taint),
    };
  },
});
