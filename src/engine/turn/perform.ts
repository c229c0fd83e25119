import { messageOf, RetryError, ShuttingDown } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { functionResult } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { OperationRecord } from "../../domain/tables/operation-record.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { Fenced, RequestChanged } from "../../domain/tables/steps.ts";
import { askPeople, cardOutcome } from "../operations/asking.ts";
import { findCarriedFiles } from "../operations/carried-files.ts";
import { type Approved, decideApproved } from "../operations/decide-approved.ts";
import { type Ended, hashOf, type OperationRequest, toRefused, unknown, withSources } from "../operations/operation.ts";
import type { Origin } from "../operations/origin.ts";
import {
  type Asked,
  carryOut,
  type Decided,
  decide,
  type Ledger,
  type Recorded,
  record,
  resume,
} from "../operations/protocol.ts";
import type { ToolOutcome } from "../operations/tool.ts";
import { toolContext } from "../operations/tool-context.ts";
import { interruptionText, Parked, partly, SomebodyCame, Stopped } from "./interruption.ts";
import type { JournalEntry, TakenStep } from "./journal.ts";
import { logFor } from "./recovery.ts";
import { announce, type TurnState } from "./state.ts";
import { notSaid, unsaidCall } from "./unsaid.ts";

/** Result of a call, and the rows that are to be written with the step. */
export interface Performed {
  readonly outcome: ToolOutcome;
  readonly operations?: readonly OperationRecord[];
  /** Edit of the card by which people were asked. */
  readonly card?: readonly OutboxDraft[];
  /** True if the person who approved it was told of the wall that it crosses. */
  readonly crossesWall?: boolean;
}

/** A model's call on its way: its step, and the id under which the agent is shown it. */
interface CallPlace {
  readonly state: TurnState;
  readonly step: TakenStep<unknown>;
  readonly callId: string;
  readonly request: OperationRequest;
  /** Operation of the call, if people were asked about it. */
  readonly asked?: Operation | undefined;
  /** Operation for which this step had asked with a former input. */
  readonly replaced?: Operation | undefined;
}

/**
 * Takes a model's call through the protocol of operations, from the place that it has reached in the journal. A call that
 * was running when its process died is repeated only if its tool allows that.
 * @throws Parked when people were asked; `Approvals.decide` makes the turn ready, and `decideAsked` goes on here
 */
export async function perform(call: CallPlace, origin: Origin): Promise<Performed> {
  const { state, step, request } = call;
  const { operations, files } = state.mind;
  const known = step.state === undefined ? undefined : await operations.ofStep(state.turn.id, step.n);
  if (step.state === "started" && !request.tool.isRepeatable) return goOn({ ...call, asked: known }, origin);

  const carried = await findCarriedFiles(request, files, origin);
  const asked = known?.askedBecause == null ? undefined : known;
  // A call that was not approved is refused without another question. A question that nobody saw is asked again.
  const isAsked =
    asked && !isUnseen(asked) && (asked.decision !== "approved" || asked.inputHash === hashOf(request, carried));
  const place = isAsked ? { ...call, asked } : { ...call, replaced: asked };
  // The todo was open when the operation began; by now it may be done.
  const checked = step.state === undefined ? request : { ...request, todo: undefined };
  const decided = isAsked
    ? await decideAsked(state, checked, { ...origin, ...(request.tool.carries && { approved: carried }) }, asked)
    : await decide(checked, await toolContext(state.mind, origin), placeOf(place, origin));
  const recorded = await carryOut(decided, ledgerOf(place, carried));
  return toPerformed(place, recorded, decided.decision === "run" && decided.crossesWall === true);
}

/** Goes on with a call that was running when its process died, if its tool can; otherwise nobody knows what came of it. */
async function goOn(call: CallPlace, origin: Origin): Promise<Performed> {
  const { asked: known, request, state } = call;
  if (!known || !request.tool.mayResume) return toPerformed(call, record({ key: known?.key ?? origin.key }, unknown));
  const resumed = resume({ ...request, todo: undefined }, await toolContext(state.mind, origin), known);
  return toPerformed(call, await carryOut(resumed, ledgerOf(call, [])));
}

/** True if nobody saw the question: its room had become encrypted before; see `Delivery`. */
const isUnseen = ({ cardKey, decision, state }: Operation): boolean =>
  state === "asked" && decision === null && cardKey === null;

/** Place of a call for its record. A call that replaces another is another operation. */
const placeOf = ({ state: { frame }, step, callId, request, replaced }: CallPlace, { key }: Origin) => {
  const id = frame.numbers.get(callId);
  return {
    ...(replaced ? { key: digest(key, hashOf(request)) } : { key, ...(id !== undefined && { id }) }),
    n: step.n,
    callId,
    ...(frame.subAgent !== undefined && { subAgent: frame.subAgent }),
  };
};

/** Decides on a call whose turn was parked. Nothing but people's decision lets it through. */
async function decideAsked(
  { mind, turn }: TurnState,
  request: OperationRequest,
  origin: Origin,
  operation: Operation,
): Promise<Decided> {
  const { decision, key, state } = operation;
  if (state === "asked" && decision === null) {
    await mind.turns.park(turn, key);
    throw new Parked([]);
  }
  if (isApproved(operation)) return decideApproved(mind, request, origin, operation);
  return { decision: "refuse", row: { key }, ended: notAllowed(request, operation) };
}

const isApproved = (operation: Operation): operation is Approved =>
  operation.decision === "approved" && operation.decidedBy !== null;

function notAllowed({ tool }: OperationRequest, { state, decidedBy, decidedBecause }: Operation): Ended {
  if (state === "expired") return toRefused(tool, "nobody has approved it in time", "expired");
  if (decidedBy === null) return toRefused(tool, decidedBecause ?? "nobody could be asked");
  const why = decidedBecause ? `: ${decidedBecause}` : "";
  return toRefused(tool, `${decidedBy} has denied it${why}`);
}

/** Writes the operation down in the turn's journal. */
const ledgerOf = (place: CallPlace, carried: readonly Stamp[]): Ledger => ({
  clock: place.state.mind.clock,
  ask: (asked) => ask(place, asked, carried),
  begin: async (begun) => {
    await place.state.journal.begin(place.step, begun);
    return true;
  },
  async breakOff(row, { thrown, milliseconds }) {
    const { state, step, callId, asked } = place;
    const goesOn = thrown instanceof Parked || thrown instanceof ShuttingDown || thrown instanceof RetryError;
    if (goesOn || thrown instanceof Fenced) throw thrown;
    const end = { state: isStopped(thrown) ? "interrupted" : "failed", error: messageOf(thrown) } as const;
    await state.mind.turns.breakOff(state.turn, {
      n: step.n,
      operation: { ...row, ...end, milliseconds },
      entry: toStored(functionResult(callId, brokenOff(thrown), state.frame.numbers.get(callId))),
      outbox: asked ? cardOutcome(asked, end, state.mind) : [],
      subAgent: state.frame.subAgent,
      logTo: logFor(state, place.request),
    });
    throw thrown;
  },
});

const isStopped = (thrown: unknown): thrown is Error => thrown instanceof Stopped || thrown instanceof SomebodyCame;

/** Text for the agent about a call during which its turn ended. */
const brokenOff = (thrown: unknown): string =>
  isStopped(thrown) ? interruptionText(thrown.message) : `It broke off, and so did the turn. ${partly}`;

/** Parks the turn with the question. Returns how the call ends where nobody can be asked. */
async function ask(place: CallPlace, asked: Asked, carried: readonly Stamp[]): Promise<Ended> {
  const { state, step, request } = place;
  const { context } = asked;
  if (isTidying(state.turn))
    return withSources(toRefused(request.tool, "nobody is asked in the default mode"), context);
  const call = { ...asked.row, inputHash: hashOf(request, carried) };
  const asking = await askPeople(state.mind, call, { ...context, carried }, asked);
  if ("refusal" in asking) return withSources(toRefused(request.tool, asking.refusal), context);
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
    return withSources(toRefused(request.tool, error.message), context);
  }
}

function toPerformed(place: CallPlace, { ended, record }: Recorded, crossesWall = false): Performed {
  const { operations, card } = replacing(place);
  const { asked, state } = place;
  return {
    outcome: ended.outcome,
    operations: [...operations, record],
    card: [...card, ...(asked ? cardOutcome(asked, ended, state.mind) : [])],
    crossesWall,
  };
}

/** Ends the question about a former input. */
function replacing({ replaced, state }: CallPlace): Required<Pick<Performed, "operations" | "card">> {
  if (!replaced) return { operations: [], card: [] };
  const error = isUnseen(replaced) ? "it is asked elsewhere" : "what it was asked for is something else now";
  const end = { state: "refused", error } as const;
  return { operations: [{ key: replaced.key, ...end }], card: cardOutcome(replaced, end, state.mind) };
}
