import { parse } from "../../src/base/lmml/parse.ts";
import { all, textOf } from "./elements.ts";
import type { ModelRequest } from "./scripted-model.ts";

/** The name of the sub-agent that is asked; "" is the agent itself. */
export const subAgentOf = ({ body }: ModelRequest): string =>
  /^You are the sub-agent (\S+) of/.exec(body.messages[0]?.content ?? "")?.[1] ?? "";

/** Request that a sub-agent was given, and the results of its calls so far. */
export function errandOf({ body }: ModelRequest): { readonly request: string; readonly results: readonly string[] } {
  const [first, ...more] = body.messages.slice(1).map(({ role, content }) => ({ role, shown: content }));
  const [events] = all(parse(first?.shown ?? "<newEvents />"), "newEvents");
  const request = all(events, "parameter").find(({ attributes }) => attributes.name === "request");
  const returned = more.filter(({ role }) => role === "tool").map(({ shown }) => parse(shown));
  const results = [...all(events, "functionResult"), ...returned].map((result) => all(result, "result").map(textOf));
  return { request: request ? textOf(request) : "", results: results.map((texts) => texts.join("")) };
}
