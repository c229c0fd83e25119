import { z } from "zod";
import { fence, inlineCode } from "../../adapters/matrix/markdown.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import { noSuchTodo, originsOf, todoLines, todoNumber } from "../../domain/plans/todo.ts";
import type { LinkedOperation, TodoRecord } from "../../domain/tables/todos.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const resultMax = 400;

export const tool = defineTool({
  name: "todos_get",
  set: "planner",
  command: "todo get",
  examples: ["3"],
  topic: "todo",
  description: "Tells all of a todo: what was done for it, with the results, and which messages were sent.",
  help: "Shows everything about a todo: what was done for it, with the results, and which messages were sent.",
  kind: "read",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ id: todoNumber() }),
  async run({ id }, { agent, by, roomId, todos }) {
    const todo = await todos.record(seatOf(agent, roomId), id);
    if (!todo) throw noSuchTodo(id);
    const { operations } = todo;
    const write = by === "person" ? forPerson : forModel;
    const done = operations.length === 0 ? ["Nothing was done for it so far."] : operations.map(write);
    const result = [by === "person" ? fence(headOf(todo)) : headOf(todo), ...done].join("\n\n");
    return { result, ...originsOf([todo, ...operations]) };
  },
});

const headOf = (todo: TodoRecord): string =>
  [
    todoLines([todo]),
    `made: ${eventTime(todo.createdAt)}`,
    ...(todo.doneAt ? [`done: ${eventTime(todo.doneAt)}`] : []),
    ...(todo.isRemoved ? ["It was removed."] : []),
  ].join("\n");

/** Result of the call, or its beginning. */
const toldOf = ({ error, result }: LinkedOperation): string => {
  const told = error ?? result ?? "";
  const shown = beginning(told, resultMax);
  return shown === told ? told : `${shown}…`;
};

const forModel = (operation: LinkedOperation): string => {
  const { id, tool, state, summary, messages } = operation;
  const sent = messages.map(({ eventId, roomId }) => `message ${eventId} in ${roomId}`);
  return [`operation ${id}, ${tool}, ${state}: ${summary}`, ...sent, toldOf(operation)].join("\n").trim();
};

/** Markdown, with links to the messages. */
const forPerson = (operation: LinkedOperation): string => {
  const { id, tool, state, summary, messages } = operation;
  const links = messages.map(
    ({ eventId, roomId }) =>
      `[message](https://matrix.to/#/${encodeURIComponent(roomId)}/${encodeURIComponent(eventId)})`,
  );
  const head = `operation ${id}, ${tool}, ${state}: ${inlineCode(summary)}`;
  const told = toldOf(operation);
  return [[head, ...links].join(" · "), ...(told === "" ? [] : [fence(told)])].join("\n");
};
