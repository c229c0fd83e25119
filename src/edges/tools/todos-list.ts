import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { originsOf, todoLines } from "../../domain/plans/todo.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_list",
  set: "planner",
  command: "todo",
  aliases: ["todo list", "todos"],
  topic: "todo",
  description: "Lists what this conversation has set out to do.",
  help: "Lists the todos of this room: what the agent has set out to do.",
  kind: "read",
  isOwn: true,
  isRepeatable: true,
  input: z.object({}),
  async run(_, { agent, roomId, todos }) {
    const all = await todos.list(seatOf(agent, roomId));
    return { result: all.length === 0 ? "There are no todos." : todoLines(all), isVerbatim: true, ...originsOf(all) };
  },
});
