import type { TakenWake, Turn } from "../database/turns.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Agent } from "./agent.ts";
import { requesters, threadOf } from "./cause.ts";
import type { Mind } from "./mind.ts";
import type { ToolContext } from "./tool.ts";

/** Where a call comes from, and for whom it is made. */
export interface Origin {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  readonly threadId: EventId | undefined;
  /** The same for the same call, however often it is run. */
  readonly key: string;
  readonly requesters: readonly UserId[];
  /** What those who will read the result have been shown already; see `History.mayReadAll`. */
  readonly sources: readonly RoomId[];
  readonly signal: AbortSignal;
}

/** A call that the model made in a turn. */
export const originInTurn = (
  agent: Agent,
  turn: Turn,
  wakes: readonly TakenWake[],
  rest: Pick<Origin, "key" | "sources" | "signal">,
): Origin => ({
  agent,
  roomId: turn.roomId,
  threadId: threadOf(wakes),
  requesters: requesters(wakes, agent.owner),
  ...rest,
});

/** Everything that a tool may use, for models' calls and people's commands alike. */
export async function toolContext(
  mind: Pick<Mind, "clock" | "directory" | "rights" | "rooms" | "submodels">,
  origin: Origin,
): Promise<ToolContext> {
  const { clock, directory, rights, rooms, submodels } = mind;
  return {
    ...origin,
    level: await rights.leastOf(origin.requesters),
    now: clock.now(),
    rooms,
    agents: directory,
    submodel: submodels.for(origin),
  };
}
