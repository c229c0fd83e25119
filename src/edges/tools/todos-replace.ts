import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { todoLines, todoNames } from "../../domain/plans/todo.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_replace",
  set: "planner",
  command: "todo replace",
  examples: ["Read the report; Ask Mia for the figures; Write the summary"],
  topic: "todo",
  description: "Puts new todos, all undone, in the place of all that there are.",
  help: "Replaces all todos of this room by new ones.",
  kind: "update",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ todos: todoNames().describe("What is to be done, one after the other") }),
  async run({ todos: names }, context) {
    const made = await context.todos.replace(seatOf(context.agent, context.roomId), names, context);
    return { result: todoLines(made), isVerbatim: true };
  },
});
