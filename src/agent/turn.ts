import { systemEvent } from "../context/ephemeris.ts";
import type { Conversation } from "../database/routing.ts";
import type { ClaimedTurn, TakenWake } from "../database/turns.ts";
import { HOME } from "../lib/ids.ts";
import { render } from "../lmml/render.ts";
import { act } from "./act.ts";
import type { Agent } from "./agent.ts";
import { asked, threadOf } from "./cause.ts";
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
    journal: new Journal(mind.turns, turn, written),
    entries: [],
    sources: turn.sources,
    spoke: false,
    read: false,
    reminded: false,
    calls: 0,
  };
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
  return reachLimit(state, await mind.turns.absorb(turn, { more: false }));
}

async function reachLimit(state: TurnState, wakes: readonly TakenWake[]): Promise<Conversation[]> {
  const { mind, agent, turn, journal } = state;
  const limit = `The turn ended: it reached its limit of ${agent.settings.maxIterations} steps.`;
  const step = journal.take("limit");
  const notice =
    asked(wakes) && !state.spoke && turn.roomId !== HOME
      ? utter({
          sender: agent.userId,
          roomId: turn.roomId,
          text: "I came to the limit of my steps before I had an answer. Ask me again, perhaps in smaller pieces.",
          threadId: threadOf(wakes),
          notice: true,
          key: keyOfStep(state, step.n),
        })
      : [];
  const waiting = await journal.commit({
    n: step.n,
    name: "limit",
    result: {},
    outbox: notice,
    ephemeris: [render(systemEvent(mind.clock.now(), limit))],
    ends: true,
  });
  announce(state, notice);
  return waiting;
}
