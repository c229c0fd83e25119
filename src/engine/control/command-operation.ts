import { fence } from "../../adapters/matrix/markdown.ts";
import { threadPlaceOf } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { render } from "../../base/lmml/render.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { helpFor } from "../operations/command-line.ts";
import { type Ended, ending, type OperationRequest, toRefused, unknown } from "../operations/operation.ts";
import { carryOut, decide, type Ledger, parseLine, type Recorded, record } from "../operations/protocol.ts";
import type { AnyTool, ToolOutcome } from "../operations/tool.ts";
import { toolContext } from "../operations/tool-context.ts";
import { interruptionText, Stopped } from "../turn/interruption.ts";
import type { Answer, CommandContext } from "./define-command.ts";
import { showMistake } from "./mistake.ts";

/** Runs a tool that a person commands. The operation is recorded with all that follows from the command. */
export async function runTool(agent: Agent, tool: AnyTool, line: string, context: CommandContext): Promise<Answer> {
  const { event, prefix, underWay } = context;
  const parsed = parseLine({ agent, roomId: event.roomId }, tool, line);
  if (parsed.state === "invalid") throw new UserError(`${parsed.mistake}\n\n${helpFor(tool, prefix)}`);
  const command = { requester: event.sender, repeatable: tool.repeatable };
  return underWay.run({ agent: agent.name, roomId: event.roomId }, command, async (signal) => {
    const audience = await context.history.audience(event.roomId, agent.owner);
    const { ended, record: operation } = await operate(agent, parsed.request, context, signal);
    const { outcome, error } = ended;
    const sources = [event.roomId, ...(outcome.sources ?? [])];
    return {
      text:
        error === undefined ? textOf(outcome, outcome.speaksIn === event.roomId) : showMistake(failureOf(ended, error)),
      taint: outcome.taint ?? [],
      outbox: outcome.outbox ?? [],
      wakes: outcome.wakes ?? [],
      operation: { ...operation, agent: agent.name, sources, audience },
    };
  });
}

/** Brings the command through the protocol of operations. */
async function operate(
  agent: Agent,
  request: OperationRequest,
  context: CommandContext,
  signal: AbortSignal,
): Promise<Recorded> {
  const { event, message, operations } = context;
  const key = digest("command", event.eventId);
  // It was under way when its process died.
  if (!request.tool.repeatable && (await operations.isKnown(key))) return record({ key }, unknown);
  const origin = {
    agent,
    roomId: event.roomId,
    thread: threadPlaceOf(message.threadId, event.eventId),
    key,
    chain: event.eventId,
    by: "person" as const,
    requesters: [event.sender],
    sources: [event.roomId],
    taint: [],
    todo: request.todo,
    signal,
  };
  return carryOut(await decide(request, await toolContext(context, origin)), ledgerOf(agent, context));
}

/** Writes down what begins; how it has ended is written with the answer to the command. */
const ledgerOf = (agent: Agent, { clock, event, operations }: CommandContext): Ledger => ({
  clock,
  ask: async ({ request, reason }) => toRefused(request.tool, reason),
  begin: (begun) => operations.begin(begun, { agent: agent.name, roomId: event.roomId }),
  async breakOff(_row, { thrown }) {
    if (!(thrown instanceof Stopped)) throw thrown;
    return { state: "interrupted", outcome: { result: interruptionText(thrown.message) }, error: thrown.message };
  },
});

/** Tells a person, who knows what they have written, why it is not done. */
function failureOf({ state, outcome }: Ended, error: string): string {
  if (state === "failed") return error;
  return state === "refused" ? `Not done: ${ending(error)}` : textOf(outcome, false);
}

function textOf({ result, verbatim }: ToolOutcome, spoken: boolean): string {
  if (typeof result !== "string") return spoken ? "" : fence(render(result), "xml");
  return verbatim ? fence(result) : result;
}
