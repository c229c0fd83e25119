import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { noSuchTodo, originsOf, todoLines, todoNumber } from "../../domain/plans/todo.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_done",
  set: "planner",
  command: "todo done",
  examples: ["3"],
  topic: "todo",
  description: "Marks a todo as done.",
  kind: "update",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ id: todoNumber() }),
  async run({ id }, { agent, roomId, todos }) {
    const todo = await todos.finish(seatOf(agent, roomId), id);
    if (!todo) throw noSuchTodo(id);
    return { result: todoLines([todo]), isVerbatim: true, ...originsOf([todo]) };
  },
});
