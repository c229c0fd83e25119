import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { defineTool } from "../agent/tool.ts";

export const tool = defineTool({
  name: "todos_clear",
  set: "planner",
  command: "todo clear",
  description: "Removes all todos of this conversation.",
  kind: "delete",
  own: true,
  // It would remove what was added since.
  repeatable: false,
  input: z.object({}),
  async run(_, { agent, roomId, todos }) {
    const count = await todos.clear(seatOf(agent, roomId));
    return { result: count === 1 ? "One todo was removed." : `${count} todos were removed.` };
  },
});
