import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { noSuchTodo, originsOf, todoNumber } from "../../domain/plans/todo.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_remove",
  set: "planner",
  command: "todo remove",
  examples: ["3"],
  topic: "todo",
  description: "Removes a todo that is not to be done any more, or that is done and need not be seen.",
  help: "Removes a todo that is done, or that is not to be done any more.",
  kind: "delete",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ id: todoNumber() }),
  async run({ id }, { agent, roomId, todos }) {
    const todo = await todos.remove(seatOf(agent, roomId), id);
    if (!todo) throw noSuchTodo(id);
    return { result: `Removed: ${todo.number} ${todo.name}`, isVerbatim: true, ...originsOf([todo]) };
  },
});
