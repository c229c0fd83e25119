import type { Json } from "../../adapters/database/connection.ts";
import { type Conversation, digest } from "../../base/lib/ids.ts";
import { canonicalJson, isObject } from "../../base/lib/json.ts";
import { render } from "../../base/lmml/render.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { folderHere, fromShare, inSandbox } from "../../domain/files/path.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OperationCall } from "../../domain/tables/operation-record.ts";
import { positionalFields } from "./command-line.ts";
import type { AnyTool, OperationKind, ToolContext, ToolOutcome } from "./tool.ts";
import type { Arguments } from "./toolbox.ts";

/** A call with its tool and a valid input. */
export type OperationRequest = { readonly tool: AnyTool } & Arguments;

/** Writes paths from their share on; see `Tool.paths`. Whatever looks at the input later sees one path for one file. */
export function completePaths<Input extends Readonly<Record<string, unknown>>>(
  tool: Pick<AnyTool, "paths" | "pathsIn">,
  input: Input,
  { agent, roomId }: Conversation,
): Input {
  const here = folderHere(agent, roomId);
  const whole = (tool.paths ?? []).flatMap((field) => {
    const path = input[field];
    if (typeof path !== "string") return [];
    return [[field, tool.pathsIn === "sandbox" ? inSandbox(path) : fromShare(path, here)]];
  });
  return { ...input, ...Object.fromEntries(whole) };
}

/** True if the call may run at once with others of its step. */
export const mayRunBeside = ({ tool: { runsBeside: beside, kind }, input }: OperationRequest): boolean =>
  typeof beside === "function" ? beside(input) : (beside ?? kind === "read");

/** A reason as the end of a sentence. */
export const ending = (why: string): string => `${why}${/[.!?]$/.test(why) ? "" : "."}`;

/** End of an operation, and the result for its caller. */
export interface Ended {
  readonly state: "done" | "failed" | "refused" | "expired" | "interrupted" | "unknown";
  readonly outcome: ToolOutcome;
  /** Why it is not done. */
  readonly error?: string;
}

const notCarriedOut = (tool: AnyTool, why: string): string => `${tool.name} was not carried out: ${ending(why)}`;

export const toRefused = (tool: AnyTool, why: string, state: Ended["state"] = "refused"): Ended => ({
  state,
  outcome: { result: notCarriedOut(tool, why) },
  error: why,
});

/** Text for an operation that was under way when the process died. */
export const outcomeUnknown =
  "The outcome is unknown: this was under way when the bridge was interrupted, and it was not repeated. Look before you try it again.";

export const unknown: Ended = { state: "unknown", outcome: { result: outcomeUnknown } };

/** Counts what the files show that were read for it. */
export function withSources(ended: Ended, { files }: ToolContext): Ended {
  const { outcome } = ended;
  const sources = [...new Set([...(outcome.sources ?? []), ...files.sources])];
  const taint = [...new Set([...(outcome.taint ?? []), ...files.taint])];
  return { ...ended, outcome: { ...outcome, sources, taint } };
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
