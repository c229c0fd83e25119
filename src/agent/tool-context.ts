import type { TakenWake, Turn } from "../database/turns.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import { FileSystem } from "../vfs/file-system.ts";
import { type Agent, personaPath } from "./agent.ts";
import { requesters, threadOf } from "./cause.ts";
import type { Mind } from "./mind.ts";
import { includesLevel } from "./permissions.ts";
import type { ToolContext } from "./tool.ts";

/** Where a call comes from, and for whom it is made. */
export interface Origin {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  readonly threadId: EventId | undefined;
  /** The same for the same call, however often it is run. */
  readonly key: string;
  readonly by: "model" | "person";
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
  by: "model",
  requesters: requesters(wakes, agent.owner),
  ...rest,
});

/** Everything that a tool may use, for models' calls and people's commands alike. */
export async function toolContext(
  mind: Pick<Mind, "clock" | "directory" | "files" | "rights" | "rooms" | "submodels">,
  origin: Origin,
): Promise<ToolContext> {
  const { clock, directory, files, rights, rooms, submodels } = mind;
  const level = await rights.leastOf(origin.requesters);
  const { agent, key } = origin;
  const actor = {
    ...origin,
    agent: { ...agent, personaFile: personaPath(agent), scratchPadFile: agent.settings.scratchPadFile },
    uses: includesLevel(level, "use"),
    admin: level === "admin",
  };
  return {
    ...origin,
    level,
    now: clock.now(),
    rooms,
    agents: directory,
    submodel: submodels.for(origin),
    files: new FileSystem(files, actor, key),
  };
}
