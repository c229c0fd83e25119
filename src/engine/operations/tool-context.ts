import type { Clock } from "../../base/lib/clock.ts";
import { personaPath } from "../../domain/agents/agent.ts";
import type { Submodels } from "../../domain/budget/submodel.ts";
import { WindowDesk, type WindowParts } from "../../domain/desk/windows.ts";
import type { FileSystemParts } from "../../domain/files/file-reader.ts";
import { FileSystem } from "../../domain/files/file-system.ts";
import type { Actor } from "../../domain/files/place.ts";
import { higher, includesLevel, type Level } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { findUntrusted, type Trust } from "../../domain/rights/trust.ts";
import { readerFor } from "./knowing.ts";
import { deliver, type LetterServices } from "./letter.ts";
import type { Origin } from "./origin.ts";
import type { SubAgents } from "./sub-agents.ts";
import type { SharedServices, ToolContext } from "./tool.ts";
import { wakeToDelegate } from "./wake-to-delegate.ts";

/** Files as those for whom something is done may use them; `level` is what all of them may do. */
export function filesFor(
  parts: FileSystemParts,
  origin: Omit<Origin, "thread" | "todo" | "signal" | "chain"> & Pick<Actor, "sandboxRoom">,
  level: Level,
): FileSystem {
  const { agent, approved, roomId, sandboxRoom, by, requesters, sources, taint, key } = origin;
  const { name, userId, owner, settings } = agent;
  const files = { personaFile: personaPath(agent), scratchPadFile: settings.scratchPadFile };
  const may = { uses: includesLevel(level, "use"), isAdmin: level === "admin" };
  return new FileSystem(
    parts,
    {
      agent: { name, userId, owner, ...files },
      roomId,
      sandboxRoom,
      by,
      requesters,
      sources,
      approved,
      isTainted: taint.length > 0,
      ...may,
    },
    key,
  );
}

/** Services from which `toolContext` is made. */
export interface ToolServices extends Trust, LetterServices {
  readonly clock: Clock;
  readonly files: FileSystemParts;
  readonly forTools: SharedServices;
  readonly rights: Rights;
  readonly subAgents: SubAgents;
  readonly submodels: Submodels;
  readonly windows: WindowParts;
}

/** Everything that a tool may use, for models' calls and people's commands alike. */
export async function toolContext(services: ToolServices, origin: Origin): Promise<ToolContext> {
  const { clock, files, forTools, rights, subAgents, submodels, windows } = services;
  const { requesters, approvedBy } = origin;
  const { level: theirs, userId: onBehalfOf = origin.agent.owner } = await rights.weakestOf(requesters);
  const level = approvedBy === undefined ? theirs : higher(theirs, await rights.of(approvedBy));
  const own = { submodel: submodels.for(origin), files: filesFor(files, origin, level) };
  const now = clock.now();
  return {
    ...forTools,
    ...origin,
    ...own,
    level,
    onBehalfOf,
    now,
    delegate: origin.delegate ?? (({ subAgent }) => wakeToDelegate(subAgents, origin, subAgent, now)),
    filesIn: (roomId) => filesFor(files, { ...origin, roomId, sandboxRoom: origin.roomId }, level),
    letter: (to, text) => deliver(services, origin, { to, text, onBehalfOf, at: now }),
    windows: new WindowDesk(windows, {
      ...origin,
      ...own,
      findPassages: (question) => forTools.knowledge.find(readerFor(origin, level), question),
      untrusted: (names) => findUntrusted(names, origin.agent, services),
    }),
  };
}
