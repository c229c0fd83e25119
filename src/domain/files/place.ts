import { type AgentName, type Conversation, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { isRoomId, isUserId } from "../../base/lib/matrix-id.ts";
import { type FilePath, folderHere, formatPath, parsePath, rootOf, shortenPath } from "./path.ts";
import type { Stamp } from "./stamp.ts";

/** For whom something is done with files, and from where. */
export interface Actor {
  readonly agent: {
    readonly name: string;
    readonly userId: UserId;
    readonly owner: UserId;
    /** Files of the agent's settings that follow rules of their own wherever they are. */
    readonly personaFile: string;
    readonly scratchPadFile: string | null;
  };
  /** The conversation's room, '' at home: its people will hear of what is read. */
  readonly roomId: RoomId;
  /** The conversation's room whose sandbox `sandbox:` is, where that is another one. */
  readonly sandboxRoom?: RoomId | undefined;
  readonly by: "model" | "person";
  /** People for whom it is done: the person who commands, or those for whom the agent acts. */
  readonly requesters: readonly UserId[];
  /** All of them have the right to `use`. */
  readonly uses: boolean;
  /** All of them are admins. */
  readonly isAdmin: boolean;
  /** Rooms and users whose content was shown in the turn. */
  readonly sources: readonly RoomId[];
  /** True if it has read text of untrusted people: the file that it writes is then tainted. */
  readonly isTainted: boolean;
  /** The only files whose content may be read, as they were when somebody approved it; undefined: all. */
  readonly approved?: readonly Stamp[] | undefined;
}

/**
 * Sources that are stored with a file, of those of its text: without the one whose file it is, and the home by the name of its
 * owner. What defines agents is the word of people, and open to all who use them.
 */
export function storedSources(file: FilePath, actor: Actor, sources: Iterable<RoomId>): RoomId[] {
  const place = placeOf(file, actor, () => false);
  if (place.kind !== "walled" && place.kind !== "scratchpad") return [];
  const named = (source: RoomId): RoomId => (source === HOME ? (actor.agent.owner as string as RoomId) : source);
  const own = named(place.kind === "walled" ? place.source : HOME);
  return [...new Set([...sources].map(named))].filter((source) => source !== own).sort();
}

/** Conversation whose sandbox the actor uses. */
export const sandboxOf = ({ agent, roomId, sandboxRoom }: Actor): Conversation => ({
  agent: agent.name as AgentName,
  roomId: sandboxRoom ?? roomId,
});

/** A path as the actor writes it: a model from its share on, a person without where they are. */
export const nameFor = (
  { agent, by, roomId }: Actor,
  path: string | { readonly share: string; readonly path: string },
): string => {
  const file = typeof path === "string" ? parsePath(path) : path;
  return by === "person" ? shortenPath(folderHere(agent.name, roomId), file) : formatPath(file);
};

/** Rule under which a path stands. */
export type Place =
  /** Shipped guides and sub-agents, and what admins laid over them. */
  | { readonly kind: "system" }
  /** File that defines an agent; or a file that all agents share, where no agent has the name `root`. */
  | { readonly kind: "definition"; readonly root: string }
  | { readonly kind: "scratchpad" }
  /** Behind a wall. The source is a room, a user, or '' for the home of the actor's agent. */
  | { readonly kind: "walled"; readonly source: RoomId }
  | { readonly kind: "closed" };

const closed: Place = { kind: "closed" };
const definitions = /^\/[^/]+\/(?:agent\.json|persona\.md|(?:directives|guides|subagents)(?:\/|$))/;

/**
 * The rule for a path, by its form alone. In `agents:` a root that is no agent's name is shared by all agents.
 * @param isAgent whether an agent has this name
 */
export function placeOf(file: FilePath, actor: Actor, isAgent: (name: string) => boolean): Place {
  const root = rootOf(file);
  switch (file.share) {
    case "system":
      return { kind: "system" };
    case "rooms":
      return isRoomId(root) ? { kind: "walled", source: root } : closed;
    case "users":
      // Files of a person stand under their id: as a source, too.
      return isUserId(root) ? { kind: "walled", source: root as string as RoomId } : closed;
    case "sandbox":
      return { kind: "walled", source: sandboxOf(actor).roomId };
    case "agents": {
      const path = formatPath(file);
      if (definitions.test(file.path)) return { kind: "definition", root };
      if (root !== actor.agent.name && isAgent(root)) return closed;
      if (path === actor.agent.personaFile) return { kind: "definition", root };
      if (path === actor.agent.scratchPadFile) return { kind: "scratchpad" };
      return root === actor.agent.name ? { kind: "walled", source: HOME } : { kind: "definition", root };
    }
  }
}
