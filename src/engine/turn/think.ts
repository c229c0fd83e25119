import type { ToolCall } from "../../adapters/model/types.ts";
import { ShuttingDown } from "../../base/lib/errors.ts";
import type { Conversation, EventId } from "../../base/lib/ids.ts";
import { digest, HOME } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { functionCall, thought } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Draft } from "../../domain/speech/draft.ts";
import { findObstacle } from "../../domain/speech/speaking.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { TakenWake, Turn } from "../../domain/tables/turns.ts";
import { parametersOf } from "../operations/operation.ts";
import { hasEvent, requesters, threadOf } from "./cause.ts";
import { promptTexts, type StepPrompt } from "./exchange.ts";
import { SomebodyCame } from "./interruption.ts";
import { confessSilence } from "./silence.ts";
import { announce, callId, keyOfStep, type TurnState } from "./state.ts";
import { takeNotes } from "./wake-notes.ts";

/** Record of a model call in the journal: the turn goes on from it as if the call had just been made. */
export interface Thinking {
  readonly at: string;
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly ToolCall[];
  /** Number of the first call, of those that it has made, from 1. */
  readonly firstCall: number;
  /** Numbers of the operations that the calls become. */
  readonly numbers?: readonly number[];
  /** Wakes whose notes it was shown first. */
  readonly told?: readonly number[];
  /** The text was said in the conversation's room. */
  readonly said?: boolean;
  /** New events that it was shown while others found no room: those are shown in a later step of the turn. */
  readonly othersWait?: readonly EventId[];
  /** There is nothing more that it wants to do. */
  readonly ends: boolean;
  /** See `TurnState`. */
  readonly changes?: number | undefined;
  /** True if it was not said, because somebody came meanwhile. */
  readonly unsaid?: boolean;
}

/** Asks the model what to do next; a call that is in the journal is not made again. */
export async function think(
  state: TurnState,
  wakes: readonly TakenWake[],
): Promise<{ thinking: Thinking; waiting: Conversation[] }> {
  const { mind, agent, turn, journal, frame } = state;
  const { clock, log, model, renders, toolbox } = mind;
  const { settings } = agent;
  const isOwn = frame.subAgent === undefined;
  const step = journal.take<Thinking>("model");
  if (step.done) {
    if (step.done.unsaid) throw new SomebodyCame("somebody came while the agent thought");
    state.changes = step.done.changes ?? state.changes;
    if (isOwn) takeNotes(state, wakes, step.done.told ?? []);
    for (const eventId of step.done.othersWait ?? []) state.shownNews.add(eventId);
    number(state, step.done);
    remember(state, step.done, entriesOf(state, step.done));
    return { thinking: step.done, waiting: [] };
  }
  const { ids: told, notes } = takeNotes(state, isOwn ? wakes : []);
  const { prompt, seen, othersWait, log: shownLog, audience } = await frame.look(state, step.n, wakes);
  const tools = toolbox.offer(agent, frame.tools);
  const conversation = digest("session", turn.agent, turn.roomId, ...(isOwn ? [] : [frame.subAgent ?? ""]));
  const sent = mind.prefixes.measure(conversation, [tools.text, ...prompt.messages.flatMap(promptTexts)]);
  const shown = renders.keepSoon({
    turnId: turn.id,
    n: step.n,
    ...prompt.kept,
    tools: tools.text,
    toolset: tools.hash,
    subAgent: frame.subAgent ?? null,
  });
  const choice = isOwn && showsImages(prompt) && !isTidying(turn) ? mind.choiceFor(agent, "see") : frame.choice;
  const draft = isOwn ? draftOf(state, wakes, step.n) : undefined;
  const answering = model.complete(
    {
      ...choice,
      messages: prompt.messages,
      tools: tools.definitions,
      mayCallInParallel: !settings.agentFlags.includes("PreventParallelFunctionCalls"),
      sessionId: conversation,
    },
    {
      key: `${turn.id}.${step.n}`,
      turnId: turn.id,
      agent,
      roomId: turn.roomId,
      requesters: requesters(wakes, agent.owner),
      isTidying: isTidying(turn),
    },
    state.signal,
    (arrival) => draft?.write(() => (arrival.calls ? "" : arrival.text)),
  );
  const completion = await answering.catch(async (error: unknown) => {
    // Another process that goes on with the turn goes on with the draft.
    if (!(error instanceof ShuttingDown)) await draft?.withdraw();
    throw error;
  });
  const { text, thought: reasoning, milliseconds, reservation } = completion;
  const calls = frame.exchange.unique(completion.toolCalls, step.n);
  const counted = { messages: prompt.messages, tools: tools.definitions };
  const shares = frame.exchange.shares.measure(counted, completion.usage.promptTokens);
  const names = calls.map(({ name }) => name);
  const { subAgent } = frame;
  log.debug({ subAgent, model: choice.model, milliseconds, ...completion.usage, calls: names }, "the model answered");
  log.trace({ subAgent, thought: reasoning, text }, "what it thought");
  const speech =
    isOwn && settings.answer === "text" && calls.length === 0 ? await speak(state, text, wakes, step.n) : [];
  const isSilent = isOwn && hasEvent(wakes) && !state.spoke && speech.length === 0;
  const isNothing = isSilent && state.wasWordless && text === "" && calls.length === 0;
  const confession = isNothing ? await confessSilence(state, wakes, step.n) : [];
  const thinking: Thinking = {
    at: clock.now().toISOString(),
    text,
    thought: reasoning,
    calls,
    firstCall: frame.calls + 1,
    numbers: await numbersFor(state, calls.length),
    ...(told.length > 0 && { told }),
    ...(speech.length > 0 && { said: true }),
    ...(othersWait && { othersWait: [...state.shownNews] }),
    ends: calls.length === 0 && !othersWait && !(isSilent && !state.wasReminded),
    changes: state.changes,
  };
  number(state, thinking);
  const entries = entriesOf(state, thinking);
  const written = {
    n: step.n,
    name: "model",
    result: thinking,
    outbox: speech,
    notices: [...confession, ...((await draft?.end()) ?? [])],
    ephemeris: [...notes, ...entries].map(toStored),
    subAgent,
    render: shown,
    usage: { ...completion.usage, ...sent, shares, model: choice.model, milliseconds, reservation },
    sources: state.sources,
    audience,
    taint: state.taint,
    ...(seen !== undefined && { seen }),
    log: shownLog,
    ends: isOwn && thinking.ends,
    unsaid: {
      result: { ...thinking, ends: false, unsaid: true },
      ephemeris: [...notes, ...entriesOf(state, { ...thinking, said: false })].map(toStored),
    },
  };
  const [first] = calls;
  const goesOn = first !== undefined && toolbox.isImmediate(agent, first.name, frame.tools);
  if (goesOn) journal.hold(written);
  const waiting = goesOn ? [] : await journal.commit(written);
  frame.exchange.addAnswer({ ...completion, model: choice.model }, calls);
  remember(state, thinking, entries);
  announce(state);
  return { thinking, waiting };
}

const showsImages = ({ messages }: StepPrompt): boolean =>
  messages.some((message) => message.role === "user" && (message.images ?? []).length > 0);

/** Numbers for the operations of a step, so that they stand beside its calls; in the layout `seed` none stand there. */
const numbersFor = async ({ agent, mind }: TurnState, count: number): Promise<number[]> => {
  if (count === 0 || agent.settings.layout === "seed") return [];
  // An answer that was paid for is not lost for the sake of a number: the operation gets one when it is recorded.
  return mind.operations.numbers(count).catch(() => []);
};

const number = (state: TurnState, { firstCall, numbers = [] }: Thinking): void => {
  for (const [index, one] of numbers.entries()) state.frame.numbers.set(callId(state, firstCall + index), one);
};

const remember = ({ frame }: TurnState, thinking: Thinking, entries: readonly Element[]): void => {
  frame.entries.push(...entries);
  frame.calls += thinking.calls.length;
};

/** A step's thoughts and calls, as the agent is shown them. */
const entriesOf = (state: TurnState, thinking: Thinking): Element[] => {
  const at = new Date(thinking.at);
  const said = thinking.said ? state.turn.roomId : undefined;
  const thoughts = [thought(at, thinking.thought), thought(at, thinking.text, said)].filter(
    ({ children }) => children !== "",
  );
  const calls = thinking.calls.map((call, index) => {
    const id = callId(state, thinking.firstCall + index);
    return functionCall(id, call.name, parametersOf(call.arguments), state.frame.numbers.get(id));
  });
  return [...thoughts, ...calls];
};

/** People see the answer grow where the agent is so configured, and where it will be said. */
const draftOf = (state: TurnState, wakes: readonly TakenWake[], n: number): Draft | undefined => {
  const { agent, audience, mind, sources, turn } = state;
  const { answer, streaming } = agent.settings;
  if (!streaming || answer !== "text" || turn.roomId === HOME || isUnasked(turn)) return undefined;
  const key = digest("draft", keyOfStep(state, n));
  const made = { audience: audience ?? [], sources };
  return mind.openDraft({ agent, roomId: turn.roomId, thread: threadOf(wakes), turn, key, ...made });
};

/** True if nobody has asked for the turn: the agent may decide to say nothing. */
const isUnasked = (turn: Turn): boolean => isTidying(turn) || turn.reason.startsWith("quiet for ");

/** Text by which an agent says that it says nothing; see the sensor `time`. */
const nothingSaid = "-";

const speak = async (
  state: TurnState,
  text: string,
  wakes: readonly TakenWake[],
  n: number,
): Promise<OutboxDraft[]> => {
  const { agent, mind, turn } = state;
  if (text === "" || turn.roomId === HOME || isTidying(turn)) return [];
  if (isUnasked(turn) && text.trim() === nothingSaid) return [];
  if (await findObstacle(turn.roomId, agent, mind.rooms)) return [];
  return utter({
    sender: agent.userId,
    roomId: turn.roomId,
    text,
    thread: threadOf(wakes),
    key: keyOfStep(state, n),
  });
};
