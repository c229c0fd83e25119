import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { shownBy, todoLines } from "../agent/todo.ts";
import { defineTool } from "../agent/tool.ts";

export const tool = defineTool({
  name: "todos_list",
  set: "planner",
  command: "todo",
  aliases: ["todo list", "todos"],
  description: "Lists what this conversation has set out to do.",
  kind: "read",
  own: true,
  repeatable: true,
  input: z.object({}),
  async run(_, { agent, roomId, todos }) {
    const all = await todos.list(seatOf(agent, roomId));
    return { result: all.length === 0 ? "There are no todos." : todoLines(all), verbatim: true, ...shownBy(all) };
  },
});
