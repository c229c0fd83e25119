import { functionResult } from "../context/ephemeris.ts";
import type { Operation, OperationCall, OperationRecord } from "../database/operations.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import { Fenced } from "../database/steps.ts";
import { messageOf } from "../lib/errors.ts";
import { render } from "../lmml/render.ts";
import { askPeople, cardOutcome } from "./asking.ts";
import { interrupted, Parked, partly, ShuttingDown, Stopped } from "./interruption.ts";
import {
  describe,
  type Ended,
  examine,
  hashOf,
  type OperationRequest,
  operate,
  refused,
  resultText,
  unknown,
  withSources,
} from "./operation.ts";
import type { TakenStep } from "./step.ts";
import type { ToolContext, ToolOutcome } from "./tool.ts";
import { type Origin, toolContext } from "./tool-context.ts";
import { announce, type TurnState } from "./turn-state.ts";

/** What has come of a call, and what is to be written of it with the step. */
export interface Performed {
  readonly outcome: ToolOutcome;
  readonly operation?: OperationRecord;
  /** What the card says now by which people were asked. */
  readonly card?: readonly OutboxDraft[];
}

/** A call on its way: its step, and the id under which the agent is shown it. */
interface Place {
  readonly state: TurnState;
  readonly step: TakenStep<unknown>;
  readonly callId: string;
  readonly request: OperationRequest;
}

/**
 * Brings a model's call through the gate, and carries it out; from wherever it stands in the journal. What was under way
 * when its process died is not repeated, unless its tool says it may be.
 * @throws Parked when people were asked
 */
export async function perform(
  state: TurnState,
  step: TakenStep<unknown>,
  callId: string,
  request: OperationRequest,
  origin: Origin,
): Promise<Performed> {
  const place: Place = { state, step, callId, request };
  const { operations } = state.mind;
  const repeated = step.state !== undefined;
  const known = repeated ? await operations.withKey(origin.key) : undefined;
  if (step.state === "started" && !request.tool.repeatable) return ended(state, origin.key, unknown, known);
  const asked = known?.askedBecause != null && known.inputHash === hashOf(request) ? known : undefined;
  if (asked) return afterAsking(place, origin, asked);

  const context = await toolContext(state.mind, origin);
  const { kind, verdict } = await examine(repeated ? begun(request) : request, context);
  const call = placed(place, describe(request, kind, context));
  switch (verdict.decision) {
    case "refuse":
      return ended(state, origin.key, withSources(refused(request.tool, verdict.reason), context), undefined, call);
    case "ask":
      return ask(place, call, context, verdict.reason, known);
    case "run":
      if (!request.tool.repeatable) await state.journal.begin(step, { ...call, state: "running" });
      return run(place, call, context, undefined);
  }
}

/** Whether its todo is open was asked before it was begun; by now it may be done. */
const begun = (request: OperationRequest): OperationRequest => ({ ...request, todo: undefined });

/** A call whose turn was parked: nothing but the decision lets it through, and not against what the gate refuses now. */
async function afterAsking(place: Place, asked: Origin, operation: Operation): Promise<Performed> {
  const { state, step, request } = place;
  const { decision, decidedBy } = operation;
  if (operation.state === "asked" && decision === null) {
    await state.mind.turns.park(state.turn, operation.key);
    throw new Parked([]);
  }
  if (decision !== "approved" || decidedBy === null)
    return ended(state, operation.key, notAllowed(place, operation), operation);

  let origin = asked;
  let context = await toolContext(state.mind, origin);
  let { verdict } = await examine(begun(request), context);
  if (verdict.decision === "ask" && verdict.lacksRights) {
    // It is done for whoever approved it, and has seen all of it.
    origin = { ...asked, requesters: [decidedBy] };
    context = await toolContext(state.mind, origin);
    ({ verdict } = await examine(begun(request), context));
    if (verdict.decision === "ask" && verdict.lacksRights) verdict = { ...verdict, decision: "refuse" };
  }
  if (verdict.decision === "ask" && verdict.wall !== undefined) {
    // Whoever approved it has let out what they saw in it, if they were told of this wall; a new one holds.
    if (operation.askedBecause?.includes(verdict.wall))
      context = await toolContext(state.mind, { ...origin, sources: [] });
    else verdict = { decision: "refuse", reason: verdict.wall };
  }
  if (verdict.decision === "refuse") {
    return ended(state, operation.key, withSources(refused(request.tool, verdict.reason), context), operation);
  }
  // What was to make something does not overwrite what is there by now.
  const call = placed(place, describe(request, operation.kind, asked));
  await state.journal.begin(step, { ...call, state: "running" });
  return run(place, call, context, operation);
}

const placed = ({ state: { frame }, step, callId }: Place, call: OperationCall): OperationCall => ({
  ...call,
  n: step.n,
  callId,
  ...(frame.subAgent !== undefined && { subAgent: frame.subAgent }),
});

function notAllowed({ request: { tool } }: Place, { state, decidedBy, decidedBecause }: Operation): Ended {
  if (state === "expired") return refused(tool, "nobody has approved it in time", "expired");
  const why = decidedBecause ? `: ${decidedBecause}` : "";
  return refused(tool, `${decidedBy ?? "somebody"} has denied it${why}`);
}

/** Parks the turn with the question. */
async function ask(
  place: Place,
  call: OperationCall,
  context: ToolContext,
  because: string,
  before: Operation | undefined,
): Promise<Performed> {
  const { state, step, request } = place;
  const asking = await askPeople(state.mind, call, context, because, before);
  if ("refusal" in asking) {
    return ended(state, call.key, withSources(refused(request.tool, asking.refusal), context), undefined, call);
  }
  const waiting = await state.journal.commit({
    n: step.n,
    name: step.name,
    result: {},
    outbox: asking.outbox,
    ephemeris: [render(asking.told)],
    sources: context.files.sources,
    taint: context.files.taint,
    operation: { ...call, ...asking.question, state: "asked" },
    asks: true,
  });
  announce(state, asking.outbox);
  throw new Parked(waiting);
}

async function run(
  { state, callId, request }: Place,
  call: OperationCall,
  context: ToolContext,
  asked: Operation | undefined,
): Promise<Performed> {
  const { clock, turns } = state.mind;
  const started = clock.monotonic();
  const milliseconds = () => Math.round(clock.monotonic() - started);
  try {
    const end = await operate(request, call.kind, context);
    // What was begun stands in its row already.
    const row = request.tool.repeatable && !asked ? call : undefined;
    return ended(state, call.key, end, asked, row, milliseconds());
  } catch (error) {
    if (error instanceof Parked || error instanceof Fenced || error instanceof ShuttingDown) throw error;
    const end = { state: error instanceof Stopped ? "interrupted" : "failed", error: messageOf(error) } as const;
    const record = { ...call, ...end, milliseconds: milliseconds() };
    const entry = render(functionResult(callId, brokenOff(error)));
    await turns.breakOff(state.turn, record, entry, asked ? cardOutcome(asked, end, state.mind.botUserId) : []);
    throw error;
  }
}

/** What the agent is told of a call in whose middle its turn ended. */
const brokenOff = (error: unknown): string =>
  error instanceof Stopped ? interrupted(error.message) : `It broke off, and so did the turn. ${partly}`;

/** @param asked the operation, where people were asked @param call where it may have no row yet */
function ended(
  { mind }: TurnState,
  key: string,
  end: Ended,
  asked: Operation | undefined,
  call?: OperationCall,
  milliseconds = 0,
): Performed {
  const { state, outcome, error } = end;
  const record = { ...call, key, state, result: resultText(outcome), milliseconds };
  return {
    outcome,
    operation: { ...record, ...(error !== undefined && { error }) },
    card: asked ? cardOutcome(asked, end, mind.botUserId) : [],
  };
}
