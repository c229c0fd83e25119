import type { Conversation } from "../../base/lib/ids.ts";
import { digest, HOME } from "../../base/lib/ids.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { BudgetReached } from "../../domain/budget/book.ts";
import { utter } from "../../domain/speech/utter.ts";
import { type Limit, type Refusal, tidyingScope } from "../../domain/tables/budgets.ts";
import type { ClaimedTurn, TakenWake } from "../../domain/tables/turns.ts";
import { act } from "./act.ts";
import { agentFrame } from "./agent-frame.ts";
import { hasEvent, threadOf } from "./cause.ts";
import { delegate } from "./delegate.ts";
import { SomebodyCame } from "./interruption.ts";
import { Journal } from "./journal.ts";
import { goOnAnew, lookAgain } from "./look-again.ts";
import type { Mind } from "./mind.ts";
import { announce, dealWithNews, keyOfStep, type TurnState } from "./state.ts";
import { think } from "./think.ts";
import { tidyingSteps } from "./tidying.ts";

/** Steps of a turn where the agent's settings name no limit: with a computer it takes more of them to come to an end. */
const stepsWithout = 10;
const stepsWithSandbox = 25;

/**
 * Works a turn through to its end, from wherever its journal stands. Returns the agent's conversations that wait.
 * Throws `Fenced` when somebody else has taken the turn over, the signal's reason when it is stopped, and whatever
 * the model or a bug throws: the turn is then still open, and the caller decides what becomes of it.
 */
export async function workTurn(
  mind: Mind,
  agent: Agent,
  turn: ClaimedTurn,
  signal: AbortSignal,
): Promise<Conversation[]> {
  // A turn that nobody has taken over begins with nothing written.
  const written = turn.epoch === 1 ? [] : await mind.turns.journal(turn);
  const usual = mind.toolbox.offersSet(agent, "sandbox") ? stepsWithSandbox : stepsWithout;
  const maxIterations = agent.settings.maxIterations ?? usual;
  const stepsMost = isTidying(turn) ? Math.min(maxIterations, tidyingSteps) : maxIterations;
  const state: TurnState = {
    mind,
    agent,
    turn,
    signal,
    journal: new Journal(mind.turns, turn, written, {
      ...mind,
      signal,
      suffix: agent.suffix,
      followUpAfterSeconds: agent.settings.followUpAfterSeconds,
    }),
    frame: agentFrame(mind, agent, turn),
    delegate,
    sources: turn.sources,
    taint: turn.taint,
    audience: turn.audience,
    changes: undefined,
    noted: new Set(),
    shownNews: new Set(),
    dealtWith: new Set(),
    spoke: false,
    hasRead: false,
    awaited: new Set(),
    images: new Map(),
    givenImages: [],
    wasReminded: false,
    wasWordless: false,
  };
  try {
    for (let iteration = 1 + goOnAnew(state); iteration <= stepsMost; iteration++) {
      signal.throwIfAborted();
      const taken = iteration === 1 ? turn.wakes : null;
      const wakes = taken ?? (await mind.turns.absorb(turn, { takesMore: !state.journal.replays }));
      if (iteration === 1 && !state.journal.replays && wakes.length > 0 && wakes.every(({ isRedacted }) => isRedacted))
        return endUnasked(state);
      state.journal.answer(wakes.findLast(({ eventId }) => eventId !== null)?.eventId ?? undefined);
      try {
        const ended = await iterate(state, wakes);
        if (ended) return ended;
      } catch (error) {
        if (!(error instanceof SomebodyCame)) throw error;
        await lookAgain(state, iteration);
      }
    }
  } catch (error) {
    // Steps that were finished before stay finished, if the turn is still ours.
    await state.journal.flush().catch(() => {});
    if (!(error instanceof BudgetReached)) throw error;
    if (error.refusal.scope !== tidyingScope) mind.tellOperators(error.message, error.message);
    return endEarly(state, "budget", error.message, budgetNotice(state, error.refusal));
  }
  return endEarly(state, "limit", `It reached its limit of ${stepsMost} steps.`, {
    text: "I came to the limit of my steps before I had an answer. Ask me again, perhaps in smaller pieces.",
    needsSilence: true,
  });
}

/** One thought, and what it asks for. Returns the agent's conversations that wait, where that ends the turn. */
async function iterate(state: TurnState, wakes: readonly TakenWake[]): Promise<Conversation[] | undefined> {
  const { thinking, waiting } = await think(state, wakes);
  if (thinking.ends) return waiting;
  state.spoke ||= thinking.said === true;
  if (thinking.calls.length === 0 && thinking.othersWait) dealWithNews(state);
  else if (thinking.calls.length === 0) {
    state.wasReminded = true;
    state.wasWordless = thinking.text === "";
  }
  return act(state, thinking, wakes);
}

/** Ends a turn of which all that asked for it was redacted before its first step. */
async function endUnasked(state: TurnState): Promise<Conversation[]> {
  const step = state.journal.take("redacted");
  const waiting = await state.journal.commit({ n: step.n, name: step.name, result: {}, ends: true });
  announce(state);
  return waiting;
}

/** Notice to people about an end that the agent did not choose. */
interface Notice {
  readonly text: string;
  /** The room hears this notice once. Without it, once for the turn. */
  readonly key?: string;
  /** True: people who have had an answer need no notice. */
  readonly needsSilence?: boolean;
}

async function endEarly(state: TurnState, name: string, why: string, told: Notice): Promise<Conversation[]> {
  const { mind, agent, turn, journal } = state;
  const wakes = await mind.turns.absorb(turn, { takesMore: false });
  const step = journal.take(name);
  const notice =
    hasEvent(wakes) && turn.roomId !== HOME && !(told.needsSilence && state.spoke)
      ? utter({
          sender: agent.userId,
          roomId: turn.roomId,
          text: told.text,
          thread: threadOf(wakes),
          isNotice: true,
          key: told.key ?? keyOfStep(state, step.n),
        })
      : [];
  const waiting = await journal.commit({
    n: step.n,
    name,
    result: {},
    notices: notice,
    ephemeris: [toStored(systemEvent(mind.clock.now(), `The turn ended: ${why}`))],
    ends: true,
  });
  announce(state);
  return waiting;
}

/** Says which budget it is, not how large: rooms may hold strangers. Once for each day and limit. */
function budgetNotice({ mind: { book }, agent, turn }: TurnState, { scope, key, day }: Refusal): Notice {
  const names = {
    bridge: "This bridge's budget",
    agent: "My budget",
    room: "This room's budget",
    requester: `The budget of ${key}`,
    [tidyingScope]: "My budget for tidying",
  };
  const { tokens, usd }: Limit =
    scope === tidyingScope ? {} : scope === "agent" ? book.limitOfAgent(agent) : book.limit(scope, key);
  return {
    text: `${names[scope]} for today is used up. Ask me again after midnight UTC.`,
    key: digest("budget", turn.roomId, scope, key, day, tokens ?? "", usd ?? ""),
  };
}
