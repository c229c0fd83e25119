import { type Element, element } from "../lmml/element.ts";
import { listPart, type Shown } from "./list-part.ts";
import type { Part } from "./part.ts";
import type { TodoView } from "./types.ts";

export const todoElement = ({ number, name, isDone }: TodoView): Element =>
  element("todo", { id: number, done: isDone }, name);

/** Tells that a todo is not there any more. */
export const removedTodo = (number: number): Element => element("todo", { id: number, removed: true });

/** Todos, those that are left to be done first. */
export const todosPart = (todos: readonly TodoView[], limit: number): Part<Shown> => {
  const inOrder = [...todos.filter(({ isDone }) => !isDone), ...todos.filter(({ isDone }) => isDone)];
  return listPart(inOrder.map(todoElement), { depth: 1, limit, keep: "first" });
};
