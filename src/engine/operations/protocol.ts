import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import type { OperationCall, OperationRecord } from "../../domain/tables/operation-record.ts";
import { readCommandLine } from "./command-line.ts";
import { type AskVerdict, gate, type Verdict } from "./gate.ts";
import {
  completePaths,
  describe,
  type Ended,
  type OperationRequest,
  resultText,
  toRefused,
  unknown,
  withSources,
} from "./operation.ts";
import type { AnyTool, OperationKind, ToolContext, ToolOutcome } from "./tool.ts";
import { inputOf, readArguments, type Toolbox, takeApart } from "./toolbox.ts";

/**
 * The course of every operation, whether a model calls the tool or a person commands it:
 *
 *     parse → decide → begin → execute → record
 *
 * A caller parses and decides, and hands the decision to `carryOut`, which takes the other steps. The `Ledger` does
 * the parts in which models and people differ: the record, the question to people, and an operation that breaks off.
 */

/** A model's call, before anybody has looked at it. */
interface ModelCall {
  readonly name: string;
  /** JSON as the model wrote it. */
  readonly arguments: string;
}

/** Call with its tool and a valid input, or the mistake in it. */
export type Parsed =
  | { readonly state: "valid"; readonly request: OperationRequest }
  | { readonly state: "invalid"; readonly mistake: string };

/** A conversation, with all that is known of its agent. */
interface Caller {
  readonly agent: Agent;
  readonly roomId: RoomId;
}

/** Parses a model's call. `tools`: names of those that the caller has; undefined is all that the agent has. */
export const parseCall = (toolbox: Toolbox, caller: Caller, call: ModelCall, tools?: readonly string[]): Parsed =>
  parse(caller, () => {
    const tool = toolbox.byName(caller.agent, call.name, tools);
    return { tool, ...readArguments(tool, call.arguments) };
  });

/** Parses a line that a person wrote behind a tool's command. */
export const parseLine = (caller: Caller, tool: AnyTool, line: string): Parsed =>
  parse(caller, () => ({ tool, ...takeApart(tool, readCommandLine({ ...tool, input: inputOf(tool) }, line)) }));

function parse({ agent, roomId }: Caller, read: () => OperationRequest): Parsed {
  try {
    const request = read();
    const input = completePaths(request.tool, request.input, { agent: agent.name, roomId });
    return { state: "valid", request: { ...request, input } };
  } catch (error) {
    if (error instanceof UserError) return { state: "invalid", mistake: error.message };
    throw error;
  }
}

/** Row of an operation: its call, or its key alone where the call is written down already. */
export type OperationRow = OperationCall | { readonly key: string; readonly tool?: never };

/** Decision to carry it out. */
interface Allowed {
  readonly decision: "run";
  readonly request: OperationRequest;
  readonly kind: OperationKind;
  readonly context: ToolContext;
  readonly row: OperationRow;
  /** True if the person who approved it was told of the wall that it crosses. */
  readonly crossesWall?: boolean;
}

/** Decision to ask people. */
export interface Asked extends AskVerdict {
  readonly request: OperationRequest;
  readonly kind: OperationKind;
  readonly context: ToolContext;
  readonly row: OperationCall;
}

/** Decision not to carry it out. */
interface Refused {
  readonly decision: "refuse";
  readonly row: OperationRow;
  readonly ended: Ended;
}

export type Decided = Allowed | Asked | Refused;

/**
 * Decides if a call is carried out: asks the gate, and describes the call for its record. It refuses a call in which it
 * finds a mistake of the caller.
 * @param place of the call in a turn, for its record
 */
export async function decide(
  request: OperationRequest,
  context: ToolContext,
  place: Partial<Pick<OperationCall, "id" | "key" | "n" | "callId" | "subAgent">> = {},
): Promise<Decided> {
  const { kind, verdict } = await examine(request, context);
  const row = { ...describe(request, kind, context), ...place };
  if (verdict.decision === "refuse")
    return { decision: "refuse", row, ended: withSources(toRefused(request.tool, verdict.reason), context) };
  return { ...verdict, request, kind, context, row };
}

/** Decides to go on with an operation that had begun when its process died: nobody is asked again. */
export const resume = (
  request: OperationRequest,
  context: ToolContext,
  { key, kind }: { readonly key: string; readonly kind: OperationKind },
): Decided => ({ decision: "run", request, kind, context, row: { key } });

/** Asks the gate, with the kind of operation that the call is. */
async function examine(
  { tool, input, todo }: OperationRequest,
  context: ToolContext,
): Promise<{ readonly kind: OperationKind; readonly verdict: Verdict }> {
  let kind: OperationKind = "read";
  try {
    if (todo !== undefined && !(await context.todos.open(seatOf(context.agent, context.roomId), todo)))
      throw new UserError(`todo: there is no open todo ${todo} here.`);
    kind = typeof tool.kind === "function" ? await tool.kind(input, context) : tool.kind;
    if (context.by === "model") await tool.check?.(input, context);
    return { kind, verdict: await gate({ ...context, tool, input, kind }) };
  } catch (error) {
    if (error instanceof UserError) return { kind, verdict: { decision: "refuse", reason: error.message } };
    throw error;
  }
}

/** Keeps the record of an operation while it is under way, and of its end. */
export interface Ledger {
  readonly clock: Clock;
  /** Asks people; throws if the caller has to wait for them. Returns the end of the call if nobody can be asked. */
  readonly ask: (asked: Asked) => Promise<Ended>;
  /** Writes that it begins. Returns false if that was written before: another process carries it out, or has died. */
  readonly begin: (record: OperationRecord) => Promise<boolean>;
  /** Returns the end of an operation that threw an error; or throws the error, so that another process goes on. */
  readonly breakOff: (row: OperationRow, broken: Broken) => Promise<Ended>;
}

/** An operation that has ended, or was refused, with the row that is to be written with all that follows from it. */
export interface Recorded {
  readonly ended: Ended;
  readonly record: OperationRecord;
}

/** Takes the steps behind a decision. */
export async function carryOut(decided: Decided, ledger: Ledger): Promise<Recorded> {
  switch (decided.decision) {
    case "refuse":
      return record(decided.row, decided.ended);
    case "ask":
      return record(decided.row, await ledger.ask(decided));
    case "run": {
      const begun = await begin(decided, ledger);
      if (begun.state === "known") return record(begun.row, unknown);
      const executed = await execute(decided, ledger.clock);
      const ended = executed.state === "ended" ? executed.ended : await ledger.breakOff(begun.row, executed);
      return record(begun.row, ended, executed.milliseconds);
    }
  }
}

/** Row of an operation that begins, or of one that had begun before: that one is not repeated. */
interface Begun {
  readonly state: "begun" | "known";
  readonly row: OperationRow;
}

/** Writes that an operation begins. One that may be repeated is written when it has ended, unless people were asked. */
async function begin({ request, row }: Allowed, ledger: Ledger): Promise<Begun> {
  if (request.tool.isRepeatable && row.tool !== undefined) return { state: "begun", row };
  const isNew = await ledger.begin({ ...row, state: "running" });
  return { state: isNew ? "begun" : "known", row: { key: row.key } };
}

/** An operation that threw something. */
interface Broken {
  readonly state: "broken";
  readonly thrown: unknown;
  readonly milliseconds: number;
}

type Executed = { readonly state: "ended"; readonly ended: Ended; readonly milliseconds: number } | Broken;

/** Runs the tool. A caller's mistake is an end like any other; all else that is thrown breaks the operation off. */
async function execute({ request, kind, context }: Allowed, clock: Clock): Promise<Executed> {
  const { tool, input } = request;
  const started = clock.monotonic();
  const milliseconds = () => Math.round(clock.monotonic() - started);
  let ended: Ended;
  try {
    const outcome = await unlessAborted(context.signal, () => tool.run(input, context, kind));
    ended = { state: outcome.isUnknown ? "unknown" : "done", outcome };
  } catch (thrown) {
    if (!(thrown instanceof UserError)) return { state: "broken", thrown, milliseconds: milliseconds() };
    ended = toRefused(tool, thrown.message, "failed");
  }
  return { state: "ended", ended: withSources(ended, context), milliseconds: milliseconds() };
}

/** Stops waiting for a tool that ignores its signal. */
async function unlessAborted(signal: AbortSignal, work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
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

/** Records how an operation has ended. */
export function record(row: OperationRow, ended: Ended, milliseconds = 0): Recorded {
  const { state, outcome, error } = ended;
  const result = resultText(outcome);
  return { ended, record: { ...row, state, result, milliseconds, ...(error !== undefined && { error }) } };
}
