import { functionCall, functionResult } from "../context/ephemeris.ts";
import { oneCallAtATime, thinkBeforeCalling } from "../context/reminders.ts";
import type { Conversation } from "../database/routing.ts";
import type { TakenWake } from "../database/turns.ts";
import type { RoomId } from "../lib/ids.ts";
import { parse } from "../lmml/parse.ts";
import { render } from "../lmml/render.ts";
import type { ToolCall } from "../model/completion.ts";
import { parametersOf, prepare } from "./operation.ts";
import { type Performed, perform } from "./perform.ts";
import type { Thinking } from "./think.ts";
import { originInTurn } from "./tool-context.ts";
import { addSources, addTaint, announce, callId, keyOfStep, type TurnState } from "./turn-state.ts";

/** What is kept of an operation. */
interface Acting {
  /** The `functionResult`, as LMML. */
  readonly result: string;
  readonly spoke: boolean;
  readonly ends: boolean;
  /** What the model is shown by the result, beyond what it was shown before. */
  readonly sources: readonly RoomId[];
  readonly taint: readonly string[];
  /** Steps that are part of it: a sub-agent's. */
  readonly parts?: number;
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
    const result = parse(acting.result);
    frame.entries.push(result);
    frame.exchange.returned(call.id, result);
  }
  return undefined;
}

/** What comes after a call. */
interface Course {
  /** Whether the turn ends with it, if its outcome says so or not. */
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
    journal.skip(step.done.parts ?? 0);
    return { acting: step.done, waiting: [] };
  }
  const prepared = refusal === undefined ? prepare(mind.toolbox, agent, call, frame.tools) : { refusal };
  let performed: Performed;
  // What is no call of a tool is no operation.
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
  const { outcome, operations = [], card = [] } = performed;
  const { sources = [], taint = [], endsTurn: ends = false, speaksIn, wakes: woken } = outcome;
  const outbox = [...(outcome.outbox ?? []), ...card];
  const result = render(functionResult(id, outcome.result));
  const { log } = mind;
  log.debug({ subAgent: frame.subAgent, function: call.name, call: id }, "a call is done");
  log.trace({ call: id, arguments: call.arguments, result }, "what it was, and what came of it");
  const spoke = state.spoke || speaksIn === turn.roomId;
  const acting: Acting = { result, spoke, ends, sources, taint, parts: journal.partsOf(step.n) };
  const written = {
    n: step.n,
    name: step.name,
    result: acting,
    outbox,
    wakes: woken,
    ephemeris: [result],
    subAgent: frame.subAgent,
    sources,
    taint,
    operations,
    ends: frame.subAgent === undefined && endsTurn(ends),
  };
  // Whom it wakes is held against the budget of its chain before another is woken.
  const holds = goesOn && step.state === undefined && woken === undefined;
  if (holds) journal.hold(written);
  const waiting = holds ? [] : await journal.commit(written);
  announce(state, woken);
  return { acting, waiting };
}
