import { systemEvent } from "../context/ephemeris.ts";
import type { TakenWake } from "../database/turns.ts";
import type { Element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { addSources, addTaint, type TurnState } from "./turn-state.ts";

const notToBeRead = "What this turn was to be about is not shown: not everybody here may read what it was made from.";

/**
 * What the wakes tell that the agent was not shown yet; from now on it is. Where a step is read from the journal, that
 * is what it has told: `ids` of its wakes.
 */
export function takeNotes(
  state: TurnState,
  wakes: readonly TakenWake[],
  ids?: readonly number[],
): { readonly ids: readonly number[]; readonly notes: readonly Element[] } {
  const { frame, mind, noted } = state;
  const fresh = wakes.filter(({ id, note }) => note !== null && !noted.has(id) && (ids?.includes(id) ?? true));
  const notes = fresh.map(({ note, withheld }) =>
    withheld ? systemEvent(mind.clock.now(), notToBeRead) : parse(note ?? ""),
  );
  const shown = fresh.filter(({ withheld }) => !withheld);
  addSources(
    state,
    shown.flatMap(({ sources }) => sources),
  );
  addTaint(
    state,
    shown.flatMap(({ taint }) => taint),
  );
  for (const { id } of fresh) noted.add(id);
  for (const note of notes) frame.exchange.told(note);
  frame.entries.push(...notes);
  return { ids: fresh.map(({ id }) => id), notes };
}
