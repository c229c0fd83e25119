import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { todoLines, todoName, tooManyTodos } from "../../domain/plans/todo.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_add",
  set: "planner",
  command: "todo add",
  examples: ["Ask Mia for the figures"],
  topic: "todo",
  description: "Adds a todo: one step of what this conversation has set out to do. It begins undone.",
  help: "Adds a todo: one thing that the agent is to do in this room.",
  kind: "create",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ name: todoName().describe("What is to be done") }),
  async run({ name }, context) {
    const made = await context.todos.add(seatOf(context.agent, context.roomId), [name], context);
    if (made.length === 0) throw tooManyTodos();
    return { result: todoLines(made), isVerbatim: true };
  },
});
