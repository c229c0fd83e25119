import { z } from "zod";
import { seatOf } from "../../domain/desk/desk.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "todos_clear",
  set: "planner",
  command: "todo clear",
  topic: "todo",
  description: "Removes all todos of this conversation.",
  help: "Removes all todos of this room.",
  kind: "delete",
  isOwn: true,
  isRepeatable: true,
  input: z.object({}),
  async run(_, { agent, key, roomId, todos }) {
    const count = await todos.clear(seatOf(agent, roomId), key);
    return { result: count === 1 ? "One todo was removed." : `${count} todos were removed.` };
  },
});
