import type { ToolCall } from "../../adapters/model/types.ts";
import type { Conversation, RoomId } from "../../base/lib/ids.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { functionCall, functionResult } from "../../base/prompt/ephemeris.ts";
import { oneCallAtATime, thinkBeforeCalling } from "../../base/prompt/reminders.ts";
import { fromStored, toStored } from "../../base/prompt/stored.ts";
import type { TakenWake } from "../../domain/tables/turns.ts";
import { mayRunBeside, parametersOf } from "../operations/operation.ts";
import { type Parsed, parseCall } from "../operations/protocol.ts";
import { originInTurn } from "./cause.ts";
import { takeImages } from "./images.ts";
import { SomebodyCame } from "./interruption.ts";
import type { TakenStep } from "./journal.ts";
import { type Performed, perform } from "./perform.ts";
import { logFor } from "./recovery.ts";
import { type Lane, sideBySide } from "./side-by-side.ts";
import { addSources, addTaint, announce, callId, dealWithNews, keyOfStep, type TurnState } from "./state.ts";
import type { Thinking } from "./think.ts";
import { findTidyingObstacle } from "./tidying.ts";
import { notSaid, unsaidCall } from "./unsaid.ts";

/** Record of an operation in the journal. */
interface Acting {
  /** The `functionResult`, as LMML. */
  readonly result: string;
  readonly spoke: boolean;
  readonly ends: boolean;
  /** Sources that the result shows the model, beyond those before. */
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  /** Steps that are part of it: a sub-agent's. */
  readonly parts?: number;
  /** True if it was not said, because somebody came meanwhile. */
  readonly unsaid?: boolean;
}

const refusedForThought = `Not carried out: ${thinkBeforeCalling}`;
const refusedForCompany = `Not carried out: ${oneCallAtATime}`;

/** Calls of one step that run at once. */
const atOnceMost = 8;

/**
 * Carries out what a step asked for: calls that only read at once with those beside them, all others one by one; the
 * results are in the order of the calls. Returns the waiting conversations if that ends the turn, or the work of the
 * sub-agent that thinks. Throws `Parked` where people have to be asked.
 */
export async function act(
  state: TurnState,
  thinking: Thinking,
  wakes: readonly TakenWake[],
): Promise<Conversation[] | undefined> {
  const { frame } = state;
  const plans = plansOf(state, thinking);
  let isEnding = false;
  let ended: Conversation[] | undefined;
  for (const group of grouped(plans)) {
    state.signal.throwIfAborted();
    await sideBySide(group, state.signal, {
      begin: (plan, lane) => begin(state, plan, wakes, lane),
      async finish(plan, begun) {
        const isLast = plan === plans.at(-1);
        const endsTurn = (ends: boolean) => isLast && (isEnding || ends) && !thinking.othersWait;
        const { acting, waiting } = "done" in begun ? begun.done : await finish(state, plan, begun, endsTurn);
        state.spoke ||= acting.spoke;
        addSources(state, acting.sources);
        addTaint(state, acting.taint);
        isEnding ||= acting.ends;
        if (isLast && isEnding && thinking.othersWait) dealWithNews(state);
        else if (isLast && isEnding) {
          ended = waiting;
          return;
        }
        const result = fromStored(acting.result);
        frame.entries.push(result);
        frame.exchange.addResult(plan.call.id, result);
      },
    });
  }
  return ended;
}

/** A call that is about to be carried out. */
interface Plan {
  readonly call: ToolCall;
  /** Id under which the agent is shown it. */
  readonly id: string;
  readonly parsed: Parsed;
  /** True if it may run at once with those beside it. */
  readonly runsBeside: boolean;
  /** True if it does nothing that is not in its outcome, nor does the next: both can be written at once. */
  readonly goesOn: boolean;
}

function plansOf(state: TurnState, { calls, firstCall, text, thought }: Thinking): Plan[] {
  const { agent, mind, frame, turn } = state;
  const { agentFlags } = agent.settings;
  const isThoughtless = text === "" && thought === "";
  const isImmediate = (call: ToolCall | undefined) =>
    call !== undefined && mind.toolbox.isImmediate(agent, call.name, frame.tools);
  return calls.map((call, index) => {
    const refusal =
      isThoughtless && agentFlags.includes("PreventFunctionCallsWithoutThoughts")
        ? refusedForThought
        : index > 0 && agentFlags.includes("PreventParallelFunctionCalls")
          ? refusedForCompany
          : undefined;
    const called: Parsed =
      refusal === undefined
        ? parseCall(mind.toolbox, { agent, roomId: turn.roomId }, call, frame.tools)
        : { state: "invalid", mistake: refusal };
    const obstacle = isTidying(turn) && called.state === "valid" ? findTidyingObstacle(called.request) : undefined;
    const parsed: Parsed = obstacle === undefined ? called : { state: "invalid", mistake: obstacle };
    const runsBeside = parsed.state === "valid" && mayRunBeside(parsed.request);
    const goesOn = isImmediate(call) && isImmediate(calls[index + 1]);
    return { call, id: callId(state, firstCall + index), parsed, runsBeside, goesOn };
  });
}

/** The plans in their order, with those together that run at once. */
function grouped(plans: readonly Plan[]): Plan[][] {
  const groups: Plan[][] = [];
  for (const plan of plans) {
    const last = groups.at(-1);
    if (last && plan.runsBeside && last.every(({ runsBeside }) => runsBeside) && last.length < atOnceMost)
      last.push(plan);
    else groups.push([plan]);
  }
  return groups;
}

/** A call that was finished before, or one that was carried out and is not written yet. */
type Begun =
  | { readonly done: { readonly acting: Acting; readonly waiting: Conversation[] } }
  | { readonly step: TakenStep<Acting>; readonly performed: Performed };

async function begin(
  state: TurnState,
  { call, id, parsed }: Plan,
  wakes: readonly TakenWake[],
  { reached, signal }: Lane,
): Promise<Begun> {
  const { agent, turn, journal, frame, sources, taint } = state;
  const step = journal.take<Acting>(`call ${call.name}`, reached);
  if (step.done) {
    if (step.done.unsaid) throw new SomebodyCame(notSaid);
    journal.skip(step.done.parts ?? 0);
    return { done: { acting: step.done, waiting: [] } };
  }
  // A call of no tool is no operation.
  if (parsed.state === "invalid") return { step, performed: { outcome: { result: parsed.mistake } } };
  const { request } = parsed;
  const { todo = frame.todo } = request;
  const origin = originInTurn(agent, turn, wakes, {
    key: keyOfStep(state, step.n),
    sources,
    taint,
    todo,
    signal,
    delegate: ({ subAgent: name }) => {
      const asked = functionCall(id, call.name, parametersOf(call.arguments), frame.numbers.get(id));
      return state.delegate(state, { name, call: asked, id, todo }, wakes);
    },
  });
  return { step, performed: await perform({ state, step, callId: id, request }, origin) };
}

/** Writes a call that was carried out. `endsTurn`: whether the turn ends with it, by what its outcome says. */
async function finish(
  state: TurnState,
  { call, id, parsed, runsBeside, goesOn }: Plan,
  { step, performed }: Exclude<Begun, { readonly done: unknown }>,
  endsTurn: (ends: boolean) => boolean,
): Promise<{ acting: Acting; waiting: Conversation[] }> {
  const { turn, journal, frame } = state;
  const { outcome, operations = [], card = [], crossesWall } = performed;
  const { sources = [], taint = [], endsTurn: ends = false, speaksIn, wakes: woken } = outcome;
  const number = operations.length > 0 ? frame.numbers.get(id) : undefined;
  const result = toStored(functionResult(id, outcome.result, number));
  const { log } = state.mind;
  log.debug({ subAgent: frame.subAgent, function: call.name, call: id }, "a call is done");
  log.trace({ call: id, arguments: call.arguments, result }, "what it was, and what came of it");
  const spoke = state.spoke || speaksIn === turn.roomId;
  const parts = runsBeside ? 0 : journal.partsOf(step.n);
  const acting: Acting = { result, spoke, ends, sources, taint, parts };
  const written = {
    n: step.n,
    name: step.name,
    result: acting,
    outbox: outcome.outbox ?? [],
    notices: card,
    crossesWall: crossesWall === true,
    wakes: woken,
    ephemeris: [result],
    kept: outcome.kept,
    subAgent: frame.subAgent,
    sources,
    taint,
    operations,
    logTo: parsed.state === "valid" ? logFor(state, parsed.request) : undefined,
    ends: frame.subAgent === undefined && endsTurn(ends),
    unsaid: unsaidCall(id, operations),
  };
  // Whom it wakes is held against the budget of its chain before another is woken.
  const holds = goesOn && step.state === undefined && woken === undefined;
  if (holds) journal.hold(written);
  await takeImages(state, outcome);
  const waiting = holds ? [] : await journal.commit(written);
  announce(state, woken);
  return { acting, waiting };
}
