import { functionResult } from "../context/ephemeris.ts";
import type { OperationCall, OperationRecord } from "../database/operation-record.ts";
import type { Operation } from "../database/operations.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import { Fenced } from "../database/steps.ts";
import { messageOf } from "../lib/errors.ts";
import { digest } from "../lib/ids.ts";
import { render } from "../lmml/render.ts";
import { askPeople, cardOutcome } from "./asking.ts";
import { interrupted, Parked, partly, ShuttingDown, Stopped } from "./interruption.ts";
import { toldOf } from "./mode.ts";
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
import type { OperationKind, ToolContext, ToolOutcome } from "./tool.ts";
import { type Origin, toolContext } from "./tool-context.ts";
import { announce, type TurnState } from "./turn-state.ts";

/** What has come of a call, and what is to be written of it with the step. */
export interface Performed {
  readonly outcome: ToolOutcome;
  readonly operations?: readonly OperationRecord[];
  /** What the card says now by which people were asked. */
  readonly card?: readonly OutboxDraft[];
}

/** A call on its way: its step, and the id under which the agent is shown it. */
interface Place {
  readonly state: TurnState;
  readonly step: TakenStep<unknown>;
  readonly callId: string;
  readonly request: OperationRequest;
  /** What the step had asked for before its input was another. */
  readonly replaced?: Operation | undefined;
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
  const before: Place = { state, step, callId, request };
  const known = step.state === undefined ? undefined : await state.mind.operations.ofStep(state.turn.id, step.n);
  if (step.state === "started" && !request.tool.repeatable) {
    return known ? ended(before, rowOf(known), unknown, known) : { outcome: unknown.outcome };
  }
  const asked = known?.askedBecause == null ? undefined : known;
  if (asked && asked.inputHash === hashOf(request)) return afterAsking(before, origin, asked);

  const place: Place = { ...before, replaced: asked };
  const context = await toolContext(state.mind, origin);
  const { kind, verdict } = await examine(step.state === undefined ? request : begun(request), context);
  const call = placed(place, describe(request, kind, context));
  switch (verdict.decision) {
    case "refuse":
      return ended(place, call, withSources(refused(request.tool, verdict.reason), context));
    case "ask":
      return ask(place, call, context, verdict.reason);
    case "run":
      if (request.tool.repeatable) return run(place, call, kind, context);
      await state.journal.begin(step, { ...call, state: "running" });
      return run(place, rowOf(call), kind, context);
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
    return ended(place, rowOf(operation), notAllowed(place, operation), operation);

  let origin = asked;
  let context = await toolContext(state.mind, origin);
  let { verdict } = await examine(begun(request), context);
  if (verdict.decision === "ask" && verdict.lacksRights) {
    // Whoever approved it has seen all of it, and lends their level; not what they may see.
    origin = { ...asked, approvedBy: decidedBy };
    context = await toolContext(state.mind, origin);
    ({ verdict } = await examine(begun(request), context));
    if (verdict.decision === "ask" && verdict.lacksRights) verdict = { ...verdict, decision: "refuse" };
  }
  if (verdict.decision === "ask" && verdict.wall !== undefined) {
    // Whoever approved it has let out what they saw in it, if they were told of this wall; a new one holds.
    if (toldOf(verdict.wall, operation.askedBecause ?? ""))
      context = await toolContext(state.mind, { ...origin, sources: [] });
    else verdict = { decision: "refuse", reason: verdict.wall };
  }
  if (verdict.decision === "refuse") {
    return ended(place, rowOf(operation), withSources(refused(request.tool, verdict.reason), context), operation);
  }
  // What was to make something does not overwrite what is there by now.
  await state.journal.begin(step, { ...rowOf(operation), state: "running" });
  return run(place, rowOf(operation), operation.kind, context, operation);
}

/** What is to be written of an operation: its call, or its key alone where the call stands in its row already. */
type Row = OperationCall | { readonly key: string; readonly tool?: never };

const rowOf = ({ key }: { readonly key: string }): Row => ({ key });

const placed = ({ state: { frame }, step, callId, replaced }: Place, call: OperationCall): OperationCall => ({
  ...call,
  ...(replaced && { key: digest(call.key, call.inputHash) }),
  n: step.n,
  callId,
  ...(frame.subAgent !== undefined && { subAgent: frame.subAgent }),
});

function notAllowed({ request: { tool } }: Place, { state, decidedBy, decidedBecause }: Operation): Ended {
  if (state === "expired") return refused(tool, "nobody has approved it in time", "expired");
  if (decidedBy === null) return refused(tool, decidedBecause ?? "nobody could be asked");
  const why = decidedBecause ? `: ${decidedBecause}` : "";
  return refused(tool, `${decidedBy} has denied it${why}`);
}

/** Parks the turn with the question. */
async function ask(place: Place, call: OperationCall, context: ToolContext, because: string): Promise<Performed> {
  const { state, step, request } = place;
  const asking = await askPeople(state.mind, call, context, because);
  if ("refusal" in asking) return ended(place, call, withSources(refused(request.tool, asking.refusal), context));
  const { operations, card } = replacing(place);
  const outbox = [...card, ...asking.outbox];
  const waiting = await state.journal.commit({
    n: step.n,
    name: step.name,
    result: {},
    outbox,
    ephemeris: [render(asking.told)],
    sources: context.files.sources,
    taint: context.files.taint,
    operations: [...operations, { ...call, ...asking.question, state: "asked" }],
    asks: true,
  });
  announce(state);
  throw new Parked(waiting);
}

/** @param asked the operation, where people were asked */
async function run(
  place: Place,
  row: Row,
  kind: OperationKind,
  context: ToolContext,
  asked?: Operation,
): Promise<Performed> {
  const { state, step, callId, request } = place;
  const { clock, botUserId, turns } = state.mind;
  const started = clock.monotonic();
  const milliseconds = () => Math.round(clock.monotonic() - started);
  try {
    return ended(place, row, await operate(request, kind, context), asked, milliseconds());
  } catch (error) {
    if (error instanceof Parked || error instanceof Fenced || error instanceof ShuttingDown) throw error;
    const end = { state: error instanceof Stopped ? "interrupted" : "failed", error: messageOf(error) } as const;
    const record = { ...row, ...end, milliseconds: milliseconds() };
    const entry = render(functionResult(callId, brokenOff(error)));
    const outbox = asked ? cardOutcome(asked, end, botUserId) : [];
    await turns.breakOff(state.turn, step.n, record, { entry, outbox, subAgent: state.frame.subAgent });
    throw error;
  }
}

/** What the agent is told of a call in whose middle its turn ended. */
const brokenOff = (error: unknown): string =>
  error instanceof Stopped ? interrupted(error.message) : `It broke off, and so did the turn. ${partly}`;

/** @param asked the operation, where people were asked */
function ended(place: Place, row: Row, end: Ended, asked?: Operation, milliseconds = 0): Performed {
  const { state, outcome, error } = end;
  const { operations, card } = replacing(place);
  const record = { ...row, state, result: resultText(outcome), milliseconds, ...(error !== undefined && { error }) };
  return {
    outcome,
    operations: [...operations, record],
    card: [...card, ...(asked ? cardOutcome(asked, end, place.state.mind.botUserId) : [])],
  };
}

/** What becomes of a question that was asked for another input. */
function replacing({ replaced, state }: Place): Required<Pick<Performed, "operations" | "card">> {
  if (!replaced) return { operations: [], card: [] };
  const end = { state: "refused", error: "what it was asked for is something else now" } as const;
  return { operations: [{ key: replaced.key, ...end }], card: cardOutcome(replaced, end, state.mind.botUserId) };
}
