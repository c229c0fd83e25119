import type { TakenWake, Turn } from "../database/turns.ts";
import type { RoomId, UserId } from "../lib/ids.ts";
import type { ThreadPlace } from "../matrix/relation.ts";
import { FileSystem, type FileSystemParts } from "../vfs/file-system.ts";
import { type Agent, personaPath } from "./agent.ts";
import { requesters, threadOf } from "./cause.ts";
import { deliver } from "./letter.ts";
import type { Mind } from "./mind.ts";
import { higher, includesLevel, type Level } from "./permissions.ts";
import { untrusted } from "./taint.ts";
import type { ToolContext } from "./tool.ts";
import { wakeToDelegate } from "./wake-to-delegate.ts";
import { WindowDesk } from "./window-desk.ts";

/** Where a call comes from, and for whom it is made. */
export interface Origin {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  readonly thread: ThreadPlace | undefined;
  /** The same for the same call, however often it is run. */
  readonly key: string;
  /** Root of the chain of turns, as `WakeDraft` has it. */
  readonly chain: string;
  readonly by: "model" | "person";
  readonly requesters: readonly UserId[];
  /** Who lends their level, where those it is done for do not have what it needs. */
  readonly approvedBy?: UserId;
  /** What those who will read the result have been shown already; see `History.mayReadAll`. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts among that; see `untrusted`. */
  readonly taint: readonly string[];
  /** Number of the todo that it is done for. */
  readonly todo?: number | undefined;
  readonly signal: AbortSignal;
  /** As `ToolContext` has it; without it, the call is a person's. */
  readonly delegate?: ToolContext["delegate"];
}

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
  ...rest,
});

/** Files as those for whom something is done may use them; `level` is what all of them may do. */
export function filesFor(
  parts: FileSystemParts,
  origin: Omit<Origin, "thread" | "todo" | "signal" | "chain">,
  level: Level,
): FileSystem {
  const { agent, roomId, by, requesters, sources, taint, key } = origin;
  const { name, userId, owner, settings } = agent;
  const files = { personaFile: personaPath(agent), scratchPadFile: settings.scratchPadFile };
  const may = { uses: includesLevel(level, "use"), admin: level === "admin" };
  return new FileSystem(
    parts,
    { agent: { name, userId, owner, ...files }, roomId, by, requesters, sources, tainted: taint.length > 0, ...may },
    key,
  );
}

/** Everything that a tool may use, for models' calls and people's commands alike. */
export async function toolContext(
  mind: Pick<
    Mind,
    | "botUserId"
    | "chains"
    | "clock"
    | "directory"
    | "files"
    | "interpreter"
    | "knowledge"
    | "rights"
    | "rooms"
    | "schedules"
    | "sensors"
    | "subAgents"
    | "submodels"
    | "todos"
    | "uploads"
    | "windows"
  >,
  origin: Origin,
): Promise<ToolContext> {
  const {
    clock,
    directory,
    files,
    interpreter,
    knowledge,
    rights,
    rooms,
    schedules,
    subAgents,
    submodels,
    todos,
    uploads,
    windows,
  } = mind;
  const { requesters, approvedBy } = origin;
  const { level: theirs, userId: onBehalfOf = origin.agent.owner } = await rights.weakestOf(requesters);
  const level = approvedBy === undefined ? theirs : higher(theirs, await rights.of(approvedBy));
  const own = { submodel: submodels.for(origin), files: filesFor(files, origin, level) };
  const now = clock.now();
  return {
    ...origin,
    ...own,
    level,
    onBehalfOf,
    now,
    delegate: origin.delegate ?? (({ subAgent }) => wakeToDelegate(subAgents, origin, subAgent, now)),
    rooms,
    agents: directory,
    filesIn: (roomId) => filesFor(files, { ...origin, roomId }, level),
    uploads,
    knowledge,
    todos,
    interpreter,
    letter: (to, text) => deliver(mind, origin, { to, text, onBehalfOf, at: now }),
    schedules,
    windows: new WindowDesk(windows, {
      ...origin,
      ...own,
      untrusted: (names) => untrusted(names, origin.agent, mind),
    }),
  };
}
