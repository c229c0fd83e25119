import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { scheduleElement } from "../agent/schedule-element.ts";
import { defineTool } from "../agent/tool.ts";
import { element } from "../lmml/element.ts";

export const tool = defineTool({
  name: "Schedule_List",
  set: "core",
  command: "schedule list",
  description: "Lists what is scheduled in this conversation, and in others that everybody here may read.",
  kind: "read",
  own: true,
  repeatable: true,
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
