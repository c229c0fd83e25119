import type { Element } from "../../base/lmml/element.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import type { TakenWake } from "../../domain/tables/turns.ts";
import { addSources, addTaint, type TurnState } from "./state.ts";

const notToBeRead = "What this turn was to be about is not shown: not everybody here may read what it was made from.";

/**
 * Takes what the wakes tell and the agent was not shown yet; from now on it is shown. Where a step is read from the
 * journal, these are the notes of the wakes `ids`.
 */
export function takeNotes(
  state: TurnState,
  wakes: readonly TakenWake[],
  ids?: readonly number[],
): { readonly ids: readonly number[]; readonly notes: readonly Element[] } {
  const { frame, mind, noted } = state;
  const fresh = wakes.filter(({ id, note }) => note !== null && !noted.has(id) && (ids?.includes(id) ?? true));
  const notes = fresh.map(({ note, isWithheld }) =>
    isWithheld ? systemEvent(mind.clock.now(), notToBeRead) : fromStored(note ?? ""),
  );
  const shown = fresh.filter(({ isWithheld }) => !isWithheld);
  addSources(
    state,
    shown.flatMap(({ sources }) => sources),
  );
  addTaint(
    state,
    shown.flatMap(({ taint }) => taint),
  );
  for (const { id } of fresh) noted.add(id);
  for (const note of notes) frame.exchange.addNote(note);
  frame.entries.push(...notes);
  return { ids: fresh.map(({ id }) => id), notes };
}
