import { UserError } from "../lib/errors.ts";
import { isObject } from "../lib/json.ts";
import type { Agent } from "./agent.ts";
import { seatOf } from "./desk.ts";
import { gate } from "./mode.ts";
import type { AnyTool, ToolContext, ToolOutcome } from "./tool.ts";
import { type Arguments, readArguments, type Toolbox } from "./toolbox.ts";

/** A model's call, before anybody has looked at it. */
export interface ModelCall {
  readonly name: string;
  /** JSON as the model wrote it. */
  readonly arguments: string;
}

/** The call with its tool and a valid input, or what is wrong with it. */
export type Prepared = ({ readonly tool: AnyTool } & Arguments) | { readonly refusal: string };

/** `tools`: names of those that the caller has; undefined is all that the agent has. */
export function prepare(toolbox: Toolbox, agent: Agent, call: ModelCall, tools?: readonly string[]): Prepared {
  try {
    const tool = toolbox.called(agent, call.name, tools);
    return { tool, ...readArguments(tool, call.arguments) };
  } catch (error) {
    if (error instanceof UserError) return { refusal: error.message };
    throw error;
  }
}

export interface OperationRequest {
  readonly tool: AnyTool;
  readonly input: Record<string, unknown>;
}

/** Passes the gate and runs; a refusal and a caller's mistake are results like any other. A bug is thrown. */
export async function operate(request: OperationRequest, context: ToolContext): Promise<ToolOutcome> {
  const outcome = await attempt(request, context);
  const sources = [...(outcome.sources ?? []), ...context.files.sources];
  const taint = [...(outcome.taint ?? []), ...context.files.taint];
  return { ...outcome, sources: [...new Set(sources)], taint: [...new Set(taint)] };
}

async function attempt({ tool, input }: OperationRequest, context: ToolContext): Promise<ToolOutcome> {
  try {
    const { todo, todos } = context;
    if (todo !== undefined && !(await todos.open(seatOf(context.agent, context.roomId), todo)))
      throw new UserError(`todo: there is no open todo ${todo} here.`);
    const kind = typeof tool.kind === "function" ? await tool.kind(input, context) : tool.kind;
    const verdict = await gate({ ...context, tool, input, kind }, context.rooms);
    if (verdict.decision === "run") return await tool.run(input, context, kind);
    return { result: `${tool.name} was not carried out: ${verdict.reason}.` };
  } catch (error) {
    if (error instanceof UserError) return { result: `${tool.name} was not carried out: ${error.message}` };
    throw error;
  }
}

/** What is said of an operation that was under way when the process died. */
export const outcomeUnknown =
  "The outcome is unknown: this was under way when the bridge was interrupted, and it was not repeated. Look before you try it again.";

/** A call's arguments by name, as the ephemeris shows them; what cannot be read is shown as it is. */
export const parametersOf = (json: string): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(json);
    if (isObject(value)) return value;
  } catch {
    // Not JSON.
  }
  return { arguments: json };
};
