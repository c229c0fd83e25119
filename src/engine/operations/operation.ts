import type { Json } from "../../adapters/database/connection.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { canonicalJson, isObject } from "../../base/lib/json.ts";
import { render } from "../../base/lmml/render.ts";
import { beginning } from "../../base/prompt/measure.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OperationCall } from "../../domain/tables/operation-record.ts";
import { positionalFields } from "./command-line.ts";
import { gate, type Verdict } from "./gate.ts";
import type { AnyTool, OperationKind, ToolContext, ToolOutcome } from "./tool.ts";
import { type Arguments, readArguments, type Toolbox } from "./toolbox.ts";

/** A model's call, before anybody has looked at it. */
export interface ModelCall {
  readonly name: string;
  /** JSON as the model wrote it. */
  readonly arguments: string;
}

export type OperationRequest = { readonly tool: AnyTool } & Arguments;

/** The call with its tool and a valid input, or what is wrong with it. */
export type Prepared = OperationRequest | { readonly refusal: string };

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

/** Answer of the gate to a call, and the kind of operation that it found. */
export interface Examined {
  readonly kind: OperationKind;
  readonly verdict: Verdict;
}

/** Asks the gate. A caller's mistake that shows already here is refused by it. */
export async function examine({ tool, input, todo }: OperationRequest, context: ToolContext): Promise<Examined> {
  let kind: OperationKind = "read";
  try {
    if (todo !== undefined && !(await context.todos.open(seatOf(context.agent, context.roomId), todo)))
      throw new UserError(`todo: there is no open todo ${todo} here.`);
    kind = typeof tool.kind === "function" ? await tool.kind(input, context) : tool.kind;
    return { kind, verdict: await gate({ ...context, tool, input, kind }) };
  } catch (error) {
    if (error instanceof UserError) return { kind, verdict: { decision: "refuse", reason: error.message } };
    throw error;
  }
}

/** How an operation has ended, and what its caller is told. */
export interface Ended {
  readonly state: "done" | "failed" | "refused" | "expired" | "interrupted" | "unknown";
  readonly outcome: ToolOutcome;
  /** Why it is not done. */
  readonly error?: string;
}

const notCarriedOut = (tool: AnyTool, why: string): string =>
  `${tool.name} was not carried out: ${why}${/[.!?]$/.test(why) ? "" : "."}`;

export const refused = (tool: AnyTool, why: string, state: Ended["state"] = "refused"): Ended => ({
  state,
  outcome: { result: notCarriedOut(tool, why) },
  error: why,
});

/** Text for an operation that was under way when the process died. */
export const outcomeUnknown =
  "The outcome is unknown: this was under way when the bridge was interrupted, and it was not repeated. Look before you try it again.";

export const unknown: Ended = { state: "unknown", outcome: { result: outcomeUnknown } };

/**
 * Carries out what the gate has let through. A caller's mistake is a result like any other; a bug is thrown, and so is
 * the reason of a signal that is aborted meanwhile: a tool that does not mind the signal is left behind.
 */
export async function operate(
  { tool, input }: OperationRequest,
  kind: OperationKind,
  context: ToolContext,
): Promise<Ended> {
  let ended: Ended;
  try {
    ended = { state: "done", outcome: await unlessAborted(context.signal, () => tool.run(input, context, kind)) };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    ended = refused(tool, error.message, "failed");
  }
  return withSources(ended, context);
}

/** Counts what the files show that were read for it. */
export function withSources(ended: Ended, { files }: ToolContext): Ended {
  const { outcome } = ended;
  const sources = [...new Set([...(outcome.sources ?? []), ...files.sources])];
  const taint = [...new Set([...(outcome.taint ?? []), ...files.taint])];
  return { ...ended, outcome: { ...outcome, sources, taint } };
}

async function unlessAborted<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const summaryMax = 160;

/** The call as its record has it. */
export function describe(
  { tool, input }: OperationRequest,
  kind: OperationKind,
  { key, requesters, todo }: Pick<ToolContext, "key" | "requesters" | "todo">,
): OperationCall {
  return {
    key,
    tool: tool.name,
    kind,
    summary: oneLine(valuesOf(tool, input)),
    input: input as Json,
    inputHash: hashOf({ tool, input }),
    requesters,
    ...(todo !== undefined && { todo }),
  };
}

/** An approval counts for exactly this: the call, and the files that it takes elsewhere as they were. */
export const hashOf = (
  { tool, input }: Pick<OperationRequest, "tool" | "input">,
  carried: readonly Stamp[] = [],
): string => digest(tool.name, canonicalJson(input), ...carried.map(({ mark }) => mark));

/** Result as text. */
export const resultText = ({ result }: ToolOutcome): string => (typeof result === "string" ? result : render(result));

/** The values that a command would give by position; of an input that has none, all. */
function valuesOf(tool: AnyTool, input: Readonly<Record<string, unknown>>): string {
  const fields = positionalFields(tool).filter((field) => input[field] !== undefined);
  return (fields.length > 0 ? fields : Object.keys(tool.input.shape))
    .flatMap((field) => input[field] ?? [])
    .map((value) => (typeof value === "string" ? value : (JSON.stringify(value) ?? "")))
    .join(", ");
}

const oneLine = (text: string): string => {
  const line = text
    .slice(0, 10 * summaryMax)
    .replace(/\s+/g, " ")
    .trim();
  return line.length > summaryMax ? `${beginning(line, summaryMax - 1)}…` : line;
};

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
