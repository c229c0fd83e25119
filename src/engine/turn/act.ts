import type { ToolCall } from "../../adapters/model/types.ts";
import type { Conversation, RoomId } from "../../base/lib/ids.ts";
import { functionCall, functionResult } from "../../base/prompt/ephemeris.ts";
import { oneCallAtATime, thinkBeforeCalling } from "../../base/prompt/reminders.ts";
import { fromStored, toStored } from "../../base/prompt/stored.ts";
import type { TakenWake } from "../../domain/tables/turns.ts";
import { parametersOf, prepare } from "../operations/operation.ts";
import { originInTurn } from "./cause.ts";
import { SomebodyCame } from "./interruption.ts";
import { type Performed, perform } from "./perform.ts";
import { addSources, addTaint, announce, callId, keyOfStep, type TurnState } from "./state.ts";
import type { Thinking } from "./think.ts";
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
  /** It was not said: somebody came meanwhile. */
  readonly unsaid?: boolean;
}

const refusedForThought = `Not carried out: ${thinkBeforeCalling}`;
const refusedForCompany = `Not carried out: ${oneCallAtATime}`;

/**
 * Carries out what a step asked for, in order. Returns the waiting conversations if that ends the turn, or the work of
 * the sub-agent that thinks. Throws `Parked` where people have to be asked.
 */
export async function act(
  state: TurnState,
  thinking: Thinking,
  wakes: readonly TakenWake[],
): Promise<Conversation[] | undefined> {
  const { agentFlags } = state.agent.settings;
  const thoughtless = thinking.text === "" && thinking.thought === "";
  const { agent, mind, frame } = state;
  const isImmediate = (call: ToolCall | undefined) =>
    call !== undefined && mind.toolbox.isImmediate(agent, call.name, frame.tools);
  let ending = false;
  for (const [index, call] of thinking.calls.entries()) {
    state.signal.throwIfAborted();
    const id = callId(state, thinking.firstCall + index);
    const refusal =
      thoughtless && agentFlags.includes("PreventFunctionCallsWithoutThoughts")
        ? refusedForThought
        : index > 0 && agentFlags.includes("PreventParallelFunctionCalls")
          ? refusedForCompany
          : undefined;
    const last = index === thinking.calls.length - 1;
    const { acting, waiting } = await carryOut(state, { id, call, refusal }, wakes, {
      endsTurn: (ends) => last && (ending || ends),
      goesOn: isImmediate(call) && isImmediate(thinking.calls[index + 1]),
    });
    state.spoke ||= acting.spoke;
    addSources(state, acting.sources);
    addTaint(state, acting.taint);
    ending ||= acting.ends;
    if (last && ending) return waiting;
    const result = fromStored(acting.result);
    frame.entries.push(result);
    frame.exchange.returned(call.id, result);
  }
  return undefined;
}

/** Place of a call among the calls of its step. */
interface Course {
  /** True if the turn ends with it; `ends` is what its outcome says. */
  readonly endsTurn: (ends: boolean) => boolean;
  /** It does nothing that is not in its outcome, and neither does the next: both can be written at once. */
  readonly goesOn: boolean;
}

async function carryOut(
  state: TurnState,
  { id, call, refusal }: { id: string; call: ToolCall; refusal: string | undefined },
  wakes: readonly TakenWake[],
  { endsTurn, goesOn }: Course,
): Promise<{ acting: Acting; waiting: Conversation[] }> {
  const { mind, agent, turn, journal, signal, frame } = state;
  const step = journal.take<Acting>(`call ${call.name}`);
  if (step.done) {
    if (step.done.unsaid) throw new SomebodyCame(notSaid);
    journal.skip(step.done.parts ?? 0);
    return { acting: step.done, waiting: [] };
  }
  const prepared = refusal === undefined ? prepare(mind.toolbox, agent, call, frame.tools) : { refusal };
  let performed: Performed;
  // A call of no tool is no operation.
  if ("refusal" in prepared) performed = { outcome: { result: prepared.refusal } };
  else {
    const { sources, taint } = state;
    const { todo = frame.todo } = prepared;
    const origin = originInTurn(agent, turn, wakes, {
      key: keyOfStep(state, step.n),
      sources,
      taint,
      todo,
      signal,
      delegate: ({ subAgent: name }) => {
        const request = functionCall(id, call.name, parametersOf(call.arguments));
        return state.delegate(state, { name, call: request, id, todo }, wakes);
      },
    });
    performed = await perform(state, step, id, prepared, origin);
  }
  const { outcome, operations = [], card = [], crossesWall } = performed;
  const { sources = [], taint = [], endsTurn: ends = false, speaksIn, wakes: woken } = outcome;
  const result = toStored(functionResult(id, outcome.result));
  const { log } = mind;
  log.debug({ subAgent: frame.subAgent, function: call.name, call: id }, "a call is done");
  log.trace({ call: id, arguments: call.arguments, result }, "what it was, and what came of it");
  const spoke = state.spoke || speaksIn === turn.roomId;
  const acting: Acting = { result, spoke, ends, sources, taint, parts: journal.partsOf(step.n) };
  const written = {
    n: step.n,
    name: step.name,
    result: acting,
    outbox: outcome.outbox ?? [],
    notices: card,
    crossesWall: crossesWall === true,
    wakes: woken,
    ephemeris: [result],
    subAgent: frame.subAgent,
    sources,
    taint,
    operations,
    ends: frame.subAgent === undefined && endsTurn(ends),
    unsaid: unsaidCall(id, operations),
  };
  // Whom it wakes is held against the budget of its chain before another is woken.
  const holds = goesOn && step.state === undefined && woken === undefined;
  if (holds) journal.hold(written);
  const waiting = holds ? [] : await journal.commit(written);
  announce(state, woken);
  return { acting, waiting };
}
