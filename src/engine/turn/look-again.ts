import { HOME } from "../../base/lib/ids.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import { agentFrame } from "./agent-frame.ts";
import { announce, type TurnState } from "./state.ts";

/** Record of a new look in the journal. */
interface Anew {
  readonly at: string;
  /** Number of calls and steps before. */
  readonly calls: number;
  readonly iterations: number;
  /** Names of the functions that were called before. */
  readonly called: readonly string[];
}

const stepName = "look again";
/** Time within which a join that the homeserver has told us of is routed, unless much is wrong. */
const patienceMs = 10_000;
const pauseMs = 100;

/**
 * Lets the turn go on as if it had just begun, for those who are there now: its thoughts, calls and results so far were
 * made from what not everybody may read, and are shown in it no more. `iterations`: how many steps it has had.
 */
export async function lookAgain(state: TurnState, iterations: number): Promise<void> {
  const { frame, journal, mind, turn } = state;
  await waitForArrivals(state);
  const step = journal.take<Anew>(stepName);
  const called = [
    ...new Set(frame.entries.flatMap(({ name, attributes }) => (name === "functionCall" ? attributes.function : []))),
  ];
  const now = mind.clock.now().toISOString();
  const anew: Anew = { at: now, calls: frame.calls, iterations, called: called.map(String) };
  await journal.commit({
    n: step.n,
    name: stepName,
    result: anew,
    ephemeris: [toStored(noticeOf(anew))],
    sources: [turn.roomId],
    looksAnew: true,
  });
  [state.sources, state.audience] = [[turn.roomId], null];
  begin(state, anew);
  announce(state);
}

/** Goes on behind the last new look of a turn that was begun before. Returns how many steps it had had. */
export function goOnAnew(state: TurnState): number {
  const anew = state.journal.beginBehind<Anew>(stepName);
  if (anew) begin(state, anew);
  return anew?.iterations ?? 0;
}

function begin(state: TurnState, anew: Anew): void {
  const { agent, mind, turn } = state;
  state.frame = agentFrame(mind, agent, turn);
  state.frame.calls = anew.calls;
  state.frame.entries.push(noticeOf(anew));
  // The causes of the turn are told and shown once more, to those who may read them.
  state.noted.clear();
  state.shownNews.clear();
  state.dealtWith.clear();
  state.spoke = false;
}

const noticeOf = ({ at, called }: Anew) => {
  const before =
    called.length === 0
      ? ""
      : ` What you had thought and done in this turn before is not shown any more; functions that you had called: ${called.join(", ")}.`;
  return systemEvent(
    new Date(at),
    `Somebody has come, or a wall has closed, while you were at work: not everybody who hears you here may read all that you had been shown. What you were about to say was not said.${before} Look again: this is what may be known here now.`,
  );
};

/** Waits until whoever is coming is there, so that the new look is made for them as well. */
async function waitForArrivals({ mind: { clock, rooms }, signal, turn }: TurnState): Promise<void> {
  const until = clock.monotonic() + patienceMs;
  while (turn.roomId !== HOME && clock.monotonic() < until && (await rooms.isAwaiting(turn.roomId))) {
    await clock.sleep(pauseMs, signal);
  }
}
