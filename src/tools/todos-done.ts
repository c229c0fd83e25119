import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { noSuchTodo, shownBy, todoLines, todoNumber } from "../agent/todo.ts";
import { defineTool } from "../agent/tool.ts";

export const tool = defineTool({
  name: "todos_done",
  set: "planner",
  command: "todo done",
  examples: ["3"],
  description: "Marks a todo as done.",
  kind: "update",
  own: true,
  repeatable: true,
  input: z.object({ id: todoNumber() }),
  async run({ id }, { agent, roomId, todos }) {
    const todo = await todos.finish(seatOf(agent, roomId), id);
    if (!todo) throw noSuchTodo(id);
    return { result: todoLines([todo]), verbatim: true, ...shownBy([todo]) };
  },
});
