import { systemEvent } from "../context/ephemeris.ts";
import type { Refusal } from "../database/budgets.ts";
import type { Conversation } from "../database/routing.ts";
import type { ClaimedTurn } from "../database/turns.ts";
import { digest, HOME } from "../lib/ids.ts";
import { render } from "../lmml/render.ts";
import { act } from "./act.ts";
import type { Agent } from "./agent.ts";
import { BudgetReached } from "./budget.ts";
import { asked, threadOf } from "./cause.ts";
import { delegate } from "./delegate.ts";
import { agentFrame } from "./look.ts";
import type { Mind } from "./mind.ts";
import { utter } from "./speech.ts";
import { Journal } from "./step.ts";
import { think } from "./think.ts";
import { announce, keyOfStep, type TurnState } from "./turn-state.ts";

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
  const state: TurnState = {
    mind,
    agent,
    turn,
    signal,
    journal: new Journal(mind.turns, turn, written, mind.onQueued),
    frame: agentFrame(mind, agent, turn),
    delegate,
    sources: turn.sources,
    taint: turn.taint,
    noted: new Set(),
    spoke: false,
    read: false,
    awaited: new Set(),
    images: new Map(),
    reminded: false,
  };
  try {
    for (let iteration = 1; iteration <= agent.settings.maxIterations; iteration++) {
      signal.throwIfAborted();
      const taken = iteration === 1 ? turn.wakes : null;
      const wakes = taken ?? (await mind.turns.absorb(turn, { more: !state.journal.replays }));
      const { thinking, waiting } = await think(state, wakes);
      if (thinking.ends) return waiting;
      if (thinking.calls.length === 0) state.reminded = true;
      const ended = await act(state, thinking, wakes);
      if (ended) return ended;
    }
  } catch (error) {
    // What was finished before stays finished, if the turn is still ours.
    await state.journal.flush().catch(() => {});
    if (!(error instanceof BudgetReached)) throw error;
    mind.tellOperators(error.message, error.message);
    return endEarly(state, "budget", error.message, budgetNotice(state, error.refusal));
  }
  return endEarly(state, "limit", `It reached its limit of ${agent.settings.maxIterations} steps.`, {
    text: "I came to the limit of my steps before I had an answer. Ask me again, perhaps in smaller pieces.",
    unlessHeard: true,
  });
}

/** What people hear of an end that the agent did not choose. */
interface Notice {
  readonly text: string;
  /** The room hears this notice once. Without it, once for the turn. */
  readonly key?: string;
  /** Whoever has had an answer needs no notice. */
  readonly unlessHeard?: boolean;
}

async function endEarly(state: TurnState, name: string, why: string, told: Notice): Promise<Conversation[]> {
  const { mind, agent, turn, journal } = state;
  const wakes = await mind.turns.absorb(turn, { more: false });
  const step = journal.take(name);
  const notice =
    asked(wakes) && turn.roomId !== HOME && !(told.unlessHeard && state.spoke)
      ? utter({
          sender: agent.userId,
          roomId: turn.roomId,
          text: told.text,
          thread: threadOf(wakes),
          notice: true,
          key: told.key ?? keyOfStep(state, step.n),
        })
      : [];
  const waiting = await journal.commit({
    n: step.n,
    name,
    result: {},
    outbox: notice,
    ephemeris: [render(systemEvent(mind.clock.now(), `The turn ended: ${why}`))],
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
  };
  const { tokens, usd } = scope === "agent" ? book.limitOfAgent(agent) : book.limit(scope, key);
  return {
    text: `${names[scope]} for today is used up. Ask me again after midnight UTC.`,
    key: digest("budget", turn.roomId, scope, key, day, tokens ?? "", usd ?? ""),
  };
}
