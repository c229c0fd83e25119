import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { TakenWake, Turn } from "../../domain/tables/turns.ts";
import type { Origin } from "../operations/origin.ts";

/** Somebody said something that the turn is about. */
export const hasEvent = (wakes: readonly TakenWake[]): boolean => wakes.some((wake) => wake.eventId !== null);

/** Finds the people for whom the turn acts; a turn that nobody caused acts for the agent's owner. */
export const requesters = (wakes: readonly TakenWake[], owner: UserId): UserId[] => {
  const people = [...new Set(wakes.map((wake) => wake.requester).filter((person) => person !== null))];
  return people.length > 0 ? people : [owner];
};

/** The thread that all of the turn's events stand in, at the newest of them. */
export const threadOf = (wakes: readonly TakenWake[]): ThreadPlace | undefined => {
  const caused = wakes.filter((wake) => wake.eventId !== null);
  const { threadId: root, eventId: latest } = caused.at(-1) ?? {};
  return root && latest && caused.every((wake) => wake.threadId === root) ? { root, latest } : undefined;
};

/** A call that the model made in a turn. */
export const originInTurn = (
  agent: Agent,
  turn: Turn,
  wakes: readonly TakenWake[],
  rest: Pick<Origin, "key" | "sources" | "taint" | "todo" | "signal" | "delegate">,
): Origin => ({
  agent,
  roomId: turn.roomId,
  thread: threadOf(wakes),
  chain: turn.chain ?? `turn:${turn.id}`,
  by: "model",
  requesters: requesters(wakes, agent.owner),
  causes: wakes.flatMap(({ eventId }) => eventId ?? []),
  ...rest,
});
