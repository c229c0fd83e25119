import type { TakenWake } from "../database/turns.ts";
import type { EventId, UserId } from "../lib/ids.ts";

/** Somebody said something that the turn is about. */
export const asked = (wakes: readonly TakenWake[]): boolean => wakes.some((wake) => wake.eventId !== null);

/** Those for whom the turn acts; a turn that nobody caused acts for the agent's owner. */
export const requesters = (wakes: readonly TakenWake[], owner: UserId): UserId[] => {
  const people = [...new Set(wakes.map((wake) => wake.requester).filter((person) => person !== null))];
  return people.length > 0 ? people : [owner];
};

/** The thread that all of the turn's events stand in. */
export const threadOf = (wakes: readonly TakenWake[]): EventId | undefined => {
  const threads = new Set(wakes.filter((wake) => wake.eventId !== null).map((wake) => wake.threadId));
  const [thread] = threads;
  return threads.size === 1 && thread ? thread : undefined;
};
