import { z } from "zod";
import { seatOf } from "../agent/desk.ts";
import { noSuchTodo, shownBy, todoLines, todoNumber } from "../agent/todo.ts";
import { defineTool } from "../agent/tool.ts";
import { beginning } from "../context/measure.ts";
import { eventTime } from "../context/time.ts";
import type { LinkedOperation, TodoRecord } from "../database/todos.ts";

const resultMax = 400;

export const tool = defineTool({
  name: "todos_get",
  set: "planner",
  command: "todo get",
  examples: ["3"],
  description: "Tells all of a todo: what was done for it, with the results, and which messages were sent.",
  kind: "read",
  own: true,
  repeatable: true,
  input: z.object({ id: todoNumber() }),
  async run({ id }, { agent, roomId, todos }) {
    const todo = await todos.record(seatOf(agent, roomId), id);
    if (!todo) throw noSuchTodo(id);
    const { operations } = todo;
    const done = operations.length === 0 ? ["Nothing was done for it so far."] : operations.map(operationText);
    return {
      result: [headOf(todo), ...done].join("\n\n"),
      verbatim: true,
      ...shownBy([todo, ...operations]),
    };
  },
});

const headOf = (todo: TodoRecord): string =>
  [
    todoLines([todo]),
    `made: ${eventTime(todo.createdAt)}`,
    ...(todo.doneAt ? [`done: ${eventTime(todo.doneAt)}`] : []),
    ...(todo.removed ? ["It was removed."] : []),
  ].join("\n");

const operationText = ({ id, tool, state, summary, result, error, messages }: LinkedOperation): string => {
  const told = error ?? result ?? "";
  const shown = beginning(told, resultMax);
  return [
    `operation ${id}, ${tool}, ${state}: ${summary}`,
    ...messages.map((message) => `message ${message.eventId} in ${message.roomId}`),
    ...(told === "" ? [] : [shown === told ? told : `${shown}…`]),
  ].join("\n");
};
