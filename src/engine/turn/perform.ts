import { messageOf, RetryError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { functionResult } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OperationCall, OperationRecord } from "../../domain/tables/operation-record.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { Fenced, RequestChanged } from "../../domain/tables/steps.ts";
import { askPeople, type Carrier, cardOutcome } from "../operations/asking.ts";
import { carriedBy } from "../operations/carried-files.ts";
import type { AskVerdict } from "../operations/gate.ts";
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
} from "../operations/operation.ts";
import type { Origin } from "../operations/origin.ts";
import type { OperationKind, ToolContext, ToolOutcome } from "../operations/tool.ts";
import { toolContext } from "../operations/tool-context.ts";
import { interrupted, Parked, partly, ShuttingDown, SomebodyCame, Stopped } from "./interruption.ts";
import type { JournalEntry, TakenStep } from "./journal.ts";
import { announce, type TurnState } from "./state.ts";
import { notSaid, unsaidCall } from "./unsaid.ts";

/** Result of a call, and the rows that are to be written with the step. */
export interface Performed {
  readonly outcome: ToolOutcome;
  readonly operations?: readonly OperationRecord[];
  /** Edit of the card by which people were asked. */
  readonly card?: readonly OutboxDraft[];
  /** The person who approved it was told of the wall that it goes over. */
  readonly crossesWall?: boolean;
}

/** A call on its way: its step, and the id under which the agent is shown it. */
interface Place {
  readonly state: TurnState;
  readonly step: TakenStep<unknown>;
  readonly callId: string;
  readonly request: OperationRequest;
  /** Operation that the step had asked for before its input was another. */
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
  const carried = await carriedBy(request, state.mind.files, origin);
  // A call that is not approved needs no new question: nothing lets it through.
  if (asked && (asked.decision !== "approved" || asked.inputHash === hashOf(request, carried)))
    return afterAsking(before, origin, asked, carried);

  const place: Place = { ...before, replaced: asked };
  const context = await toolContext(state.mind, origin);
  const { kind, verdict } = await examine(step.state === undefined ? request : begun(request), context);
  const call = placed(place, describe(request, kind, context));
  switch (verdict.decision) {
    case "refuse":
      return ended(place, call, withSources(refused(request.tool, verdict.reason), context));
    case "ask":
      return ask(place, { ...call, inputHash: hashOf(request, carried) }, { ...context, carried }, verdict);
    case "run":
      if (request.tool.repeatable) return run(place, call, kind, context);
      await state.journal.begin(step, { ...call, state: "running" });
      return run(place, rowOf(call), kind, context);
  }
}

/** An open todo was checked before the operation began; by now it may be done. */
const begun = (request: OperationRequest): OperationRequest => ({ ...request, todo: undefined });

/** A call whose turn was parked: nothing but the decision lets it through, and not against what the gate refuses now. */
async function afterAsking(
  place: Place,
  asked: Origin,
  operation: Operation,
  carried: readonly Stamp[],
): Promise<Performed> {
  const { state, step, request } = place;
  const { decision, decidedBy } = operation;
  if (operation.state === "asked" && decision === null) {
    await state.mind.turns.park(state.turn, operation.key);
    throw new Parked([]);
  }
  if (decision !== "approved" || decidedBy === null)
    return ended(place, rowOf(operation), notAllowed(place, operation), operation);

  const bound = request.tool.carries ? { ...asked, approved: carried } : asked;
  let origin = bound;
  let context = await toolContext(state.mind, origin);
  let { verdict } = await examine(begun(request), context);
  if (verdict.decision === "ask" && verdict.lacksRights) {
    // The person who approved it has seen all of it, and lends their level; not what they may see.
    origin = { ...bound, approvedBy: decidedBy };
    context = await toolContext(state.mind, origin);
    ({ verdict } = await examine(begun(request), context));
    if (verdict.decision === "ask" && verdict.lacksRights) verdict = { ...verdict, decision: "refuse" };
  }
  let crossesWall = false;
  if (verdict.decision === "ask" && verdict.wall !== undefined) {
    // The person who approved it has let out what they saw in it, if they were told of this wall; a new one holds.
    crossesWall = operation.askedWall === verdict.wall.place;
    if (crossesWall) context = await toolContext(state.mind, { ...origin, sources: [] });
    else verdict = { decision: "refuse", reason: verdict.wall.text };
  }
  if (verdict.decision === "refuse") {
    return ended(place, rowOf(operation), withSources(refused(request.tool, verdict.reason), context), operation);
  }
  // An operation that was approved to create something does not overwrite what is there by now.
  await state.journal.begin(step, { ...rowOf(operation), state: "running" });
  const performed = await run(place, rowOf(operation), operation.kind, context, operation);
  return { ...performed, crossesWall };
}

/** Record of an operation: its call, or its key alone where the call stands in its row already. */
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
async function ask(
  place: Place,
  call: OperationCall,
  context: ToolContext & Carrier,
  verdict: AskVerdict,
): Promise<Performed> {
  const { state, step, request } = place;
  const asking = await askPeople(state.mind, call, context, verdict);
  if ("refusal" in asking) return ended(place, call, withSources(refused(request.tool, asking.refusal), context));
  const { operations, card } = replacing(place);
  const isHere = asking.question.cardRoom === state.turn.roomId;
  const entry: JournalEntry = {
    n: step.n,
    name: step.name,
    result: {},
    // Those who run the bridge may read every card.
    outbox: isHere ? asking.outbox : [],
    notices: isHere ? card : [...card, ...asking.outbox],
    ephemeris: [toStored(asking.told)],
    sources: context.files.sources,
    taint: context.files.taint,
    operations: [...operations, { ...call, ...asking.question, state: "asked" }],
    asks: true,
    changes: state.changes,
    unsaid: unsaidCall(place.callId, [...operations, { ...call, state: "refused", error: notSaid }]),
  };
  try {
    const waiting = await state.journal.commit(entry);
    announce(state);
    throw new Parked(waiting);
  } catch (error) {
    if (!(error instanceof RequestChanged)) throw error;
    return ended(place, call, withSources(refused(request.tool, error.message), context));
  }
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
    const goesOn = error instanceof Parked || error instanceof ShuttingDown || error instanceof RetryError;
    if (goesOn || error instanceof Fenced) throw error;
    const isBrokenOff = error instanceof Stopped || error instanceof SomebodyCame;
    const end = { state: isBrokenOff ? "interrupted" : "failed", error: messageOf(error) } as const;
    const record = { ...row, ...end, milliseconds: milliseconds() };
    const entry = toStored(functionResult(callId, brokenOff(error)));
    const outbox = asked ? cardOutcome(asked, end, botUserId) : [];
    await turns.breakOff(state.turn, step.n, record, { entry, outbox, subAgent: state.frame.subAgent });
    throw error;
  }
}

/** Text for the agent about a call in whose middle its turn ended. */
const brokenOff = (error: unknown): string =>
  error instanceof Stopped || error instanceof SomebodyCame
    ? interrupted(error.message)
    : `It broke off, and so did the turn. ${partly}`;

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

/** Ends the question that was asked for another input. */
function replacing({ replaced, state }: Place): Required<Pick<Performed, "operations" | "card">> {
  if (!replaced) return { operations: [], card: [] };
  const end = { state: "refused", error: "what it was asked for is something else now" } as const;
  return { operations: [{ key: replaced.key, ...end }], card: cardOutcome(replaced, end, state.mind.botUserId) };
}
