import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { type Todo, todosMax } from "../tables/todos.ts";

/** The input by which a todo is named. */
export const todoNumber = () => z.int32().min(1).describe("The todo's number");

/** Text of a todo, in one line. */
export const todoName = () =>
  z
    .string()
    .overwrite((name) => name.replaceAll(/\s+/g, " ").trim())
    .min(1)
    .max(500);

export const todoNames = () => z.array(todoName()).min(1).max(todosMax);

/** Walls and taint of a result that shows these todos. */
export const originsOf = (
  todos: readonly Pick<Todo, "sources" | "taint">[],
): { readonly sources: readonly RoomId[]; readonly taint: readonly string[] } => ({
  sources: todos.flatMap(({ sources }) => sources),
  taint: todos.flatMap(({ taint }) => taint),
});

/** Todos as text, a line each. */
export const todoLines = (todos: readonly Todo[]): string =>
  todos.map(({ number, name, isDone }) => `${number} [${isDone ? "x" : " "}] ${name}`).join("\n");

export const noSuchTodo = (number: number): UserError => new UserError(`There is no todo ${number} here.`);

export const tooManyTodos = (): UserError =>
  new UserError(`There are ${todosMax} todos already, the most that a conversation keeps: remove some that are done.`);
