import { fence } from "../../adapters/matrix/markdown.ts";
import { threadPlaceOf } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest, type RoomId } from "../../base/lib/ids.ts";
import { render } from "../../base/lmml/render.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { helpFor } from "../operations/command-line.ts";
import { type Ended, ending, type OperationRequest, toRefused, unknown } from "../operations/operation.ts";
import type { Origin } from "../operations/origin.ts";
import { carryOut, decide, type Ledger, parseLine, type Recorded, record, resume } from "../operations/protocol.ts";
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
  const command = { requester: event.sender, goesOn: tool.isRepeatable || tool.mayResume === true };
  return underWay.run({ agent: agent.name, roomId: event.roomId }, command, async (signal) => {
    const audience = await context.history.audience(event.roomId, agent.owner);
    const hearing = (sources: readonly RoomId[]) => ({
      here: event.roomId,
      audience,
      sources: [event.roomId, ...sources],
      owner: agent.owner,
    });
    const { ended, record: operation } = await operate(agent, parsed.request, context, {
      signal,
      showProgress: (text, sources) => context.progress?.show(text, hearing(sources)),
    });
    const { outcome, error } = ended;
    const sources = [event.roomId, ...(outcome.sources ?? [])];
    return {
      text:
        error === undefined ? textOf(outcome, outcome.speaksIn === event.roomId) : showMistake(failureOf(ended, error)),
      taint: outcome.taint ?? [],
      outbox: outcome.outbox ?? [],
      wakes: outcome.wakes ?? [],
      operation: { ...operation, agent: agent.name, sources, audience, kept: outcome.kept },
    };
  });
}

/** Brings the command through the protocol of operations. */
async function operate(
  agent: Agent,
  request: OperationRequest,
  context: CommandContext,
  run: Pick<Origin, "signal" | "showProgress">,
): Promise<Recorded> {
  const { event, message, operations } = context;
  const key = digest("command", event.eventId);
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
    ...run,
  };
  // It was under way when its process died.
  const known = request.tool.isRepeatable ? undefined : await operations.withKey(key);
  if (known && !(request.tool.mayResume && known.state === "running")) return record({ key }, unknown);
  if (known) {
    // A message of the process before may show how far it was: the answer takes its place.
    run.showProgress?.(() => "", []);
    const ledger = { ...ledgerOf(agent, context), begin: async () => true };
    return carryOut(resume(request, await toolContext(context, origin), known), ledger);
  }
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

function textOf({ result, isVerbatim }: ToolOutcome, isSpoken: boolean): string {
  if (typeof result !== "string") return isSpoken ? "" : fence(render(result), "xml");
  return isVerbatim ? fence(result) : result;
}
