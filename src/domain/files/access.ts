import { UserError } from "../../base/lib/errors.ts";
import { type AgentName, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agents } from "../tables/agents.ts";
import type { FileAccess, FileRights, FileViewer, Scratchpad } from "../tables/file-access.ts";
import type { FileInfo } from "../tables/files.ts";
import { type FilePath, formatPath, rootOf, type ShareName } from "./path.ts";
import { type Actor, nameFor, type Place, placeOf, sandboxOf } from "./place.ts";
import { workingFile, workingNameOf } from "./working-files.ts";

/**
 * Decides who may read and write which files: in this one place, anew at every access. A file that no rule opens is
 * closed.
 */
export class Access {
  readonly #walls: FileAccess;
  readonly #agents: Agents;

  constructor(walls: FileAccess, agents: Agents) {
    this.#walls = walls;
    this.#agents = agents;
  }

  /** Returns what will have been shown once the file is read, as far as there are walls around it. Throws a `UserError`. */
  async toRead(file: FilePath, actor: Actor): Promise<readonly RoomId[]> {
    const place = await this.#place(file, actor);
    switch (place.kind) {
      case "system":
        return [];
      case "definition":
        if (actor.uses) return [];
        throw closedError(file, actor, "it needs the right to use");
      case "scratchpad": {
        const pad = await this.#readsScratchpads(place.owners, actor, file);
        if (pad) return [HOME, ...pad.sources];
        throw closedError(file, actor, "a scratchpad is read by the agent's owner alone");
      }
      case "walled": {
        const rights = await this.#walls.rights(viewer(actor), place.source, file);
        const { isPresent, isEntitled, isOpen, sources } = rights;
        if (!isPresent) throw closedError(file, actor, "the agent has nothing to do with it");
        const what = rights.isHeldOpen || actor.roomId !== place.source ? "it" : allHeld;
        if (!isEntitled) throw closedError(file, actor, `${actor.requesters.join(", ")} may not read ${what}`);
        if (!isOpen) throw closedError(file, actor, `not everybody here may read ${what}`);
        return [place.source, ...sources];
      }
      case "closed":
        throw closedError(file, actor, nobodys(file, "nobody may read it from here"));
    }
  }

  /** Throws a `UserError` where somebody in the conversation may not read all that its computer may hold. */
  async toUseComputer(actor: Actor): Promise<void> {
    const { isHeldOpen } = await this.#walls.rights(viewer(actor), sandboxOf(actor).roomId, computer);
    if (!isHeldOpen) throw closedError(computer, actor, `not everybody here may read ${allHeld}`);
  }

  /**
   * Throws a `UserError` where the file may not be made, changed or removed.
   * @param isKept what stands in the file is kept: in it, or put aside
   */
  async toWrite(file: FilePath, actor: Actor, isKept = false): Promise<void> {
    const place = await this.#place(file, actor);
    switch (place.kind) {
      case "system":
        if (actor.by === "person" && actor.isAdmin) return;
        throw closedError(file, actor, "only admins write there, by a command");
      case "definition": {
        if (actor.by === "model")
          throw closedError(file, actor, "what defines an agent is written by people, by a command");
        const owner = (await this.#agents.owners([place.root])).get(place.root);
        if (actor.isAdmin || (owner !== undefined && isOnly(actor.requesters, owner))) return;
        throw closedError(
          file,
          actor,
          owner === undefined ? "only admins write there" : "only its owner and admins write there",
        );
      }
      case "scratchpad":
        if (place.isOwn && isOnly(actor.requesters, actor.agent.owner)) return;
        if (!place.isOwn && actor.by === "person" && actor.isAdmin) return;
        throw closedError(file, actor, "a scratchpad is written by its agent, for the agent's owner");
      case "walled": {
        const { isPresent, isAdmitted, isEntitled, isClean } = await this.#walls.rights(
          viewer(actor),
          place.source,
          file,
        );
        if (!isPresent) throw closedError(file, actor, "the agent has nothing to do with it");
        if (!isEntitled && !(isOwnState(file, actor, isKept) && (isAdmitted || actor.by === "model")))
          throw closedError(file, actor, `${actor.requesters.join(", ")} may not write there`);
        if (!isClean) throw closedError(file, actor, "those who can read there may not read all that was shown here");
        return;
      }
      case "closed":
        throw closedError(file, actor, nobodys(file, "nobody may write there from here"));
    }
  }

  /**
   * Before files below a folder are listed: the roots whose files may be seen, null for all. Throws a `UserError` where
   * the folder itself is closed.
   */
  async toList(folder: FilePath, actor: Actor): Promise<readonly string[] | null> {
    if (folder.share === "agents") return null;
    if (rootOf(folder) === "") {
      if (folder.share === "rooms") return this.#walls.openRooms(viewer(actor));
      if (folder.share === "users") return this.#walls.openUsers(viewer(actor));
    }
    await this.toRead(folder, actor);
    return null;
  }

  /** Tells if somebody who would see the file may not read it. */
  async isClosed({ share, path }: FilePath, actor: Actor): Promise<boolean> {
    return (await this.#walls.tooEarly(viewer(actor), share, [path])).length > 0;
  }

  /** Of files that were listed, those that may be seen, and what will have been shown with their names. */
  async filterSeen<File extends FileInfo>(
    share: ShareName,
    files: readonly File[],
    actor: Actor,
  ): Promise<{ files: File[]; sources: RoomId[] }> {
    const roots = [...new Set(files.map((file) => rootOf(file)))];
    const owners = share === "agents" ? await this.#agents.owners(roots) : new Map<string, UserId>();
    const pads = share === "agents" ? await this.#walls.scratchpads() : [];
    const places = files.map((file) => ({
      file,
      place: withPads({ share, path: file.path }, actor, (name) => owners.has(name), pads),
    }));
    const pad = places.flatMap(({ place }) => (place.kind === "scratchpad" ? place.owners : []));
    const readsPads = new Map(
      await Promise.all(
        [...new Set(pad)].map(
          async (owner) => [owner, (await this.#readsScratchpads([owner], actor)) !== undefined] as const,
        ),
      ),
    );
    const hasHome = share === "agents" && places.some(({ place }) => place.kind === "walled");
    const walled = places.flatMap(({ file, place }) =>
      place.kind === "walled" || place.kind === "scratchpad" ? file.path : [],
    );
    const early = new Set(walled.length > 0 ? await this.#walls.tooEarly(viewer(actor), share, walled) : []);
    const home = hasHome ? await this.#walls.rights(viewer(actor), HOME) : undefined;
    const visible = places.filter(
      ({ file, place }) =>
        place.kind === "system" ||
        (place.kind === "walled" &&
          !early.has(file.path) &&
          (home === undefined || (home.isEntitled && home.isOpen))) ||
        (place.kind === "definition" && actor.uses && file.sources.length === 0) ||
        (place.kind === "scratchpad" && !early.has(file.path) && place.owners.every((owner) => readsPads.get(owner))),
    );
    const sources = visible.flatMap(({ file, place }) =>
      place.kind === "walled"
        ? [place.source, ...file.sources]
        : place.kind === "scratchpad"
          ? [HOME, ...file.sources]
          : [],
    );
    return { files: visible.map(({ file }) => file), sources: [...new Set(sources)] };
  }

  async #place(file: FilePath, actor: Actor): Promise<WithPads> {
    if (file.share !== "agents") return withPads(file, actor, () => false, []);
    const owners = await this.#agents.owners([rootOf(file)]);
    const pads = owners.has(rootOf(file)) ? [] : await this.#walls.scratchpads();
    return withPads(file, actor, (name) => owners.has(name), pads);
  }

  /** A scratchpad has the wall of the home of whoever's agents write it; undefined where the actor may not read it. */
  async #readsScratchpads(owners: readonly UserId[], actor: Actor, file?: FilePath): Promise<FileRights | undefined> {
    if (!owners.every((owner) => owner === actor.agent.owner)) return undefined;
    const rights = await this.#walls.rights(viewer(actor), HOME, file);
    return rights.isEntitled && rights.isOpen ? rights : undefined;
  }
}

type WithPads =
  | Exclude<Place, { kind: "scratchpad" }>
  | {
      readonly kind: "scratchpad";
      /** True if it is the actor's. */
      readonly isOwn: boolean;
      readonly owners: readonly UserId[];
    };

/** The rule for a path; among the files of all agents, those that another agent has for its scratchpad are one. */
function withPads(
  file: FilePath,
  actor: Actor,
  isAgent: (name: string) => boolean,
  pads: readonly Scratchpad[],
): WithPads {
  const place = placeOf(file, actor, isAgent);
  const path = formatPath(file);
  const isShared = file.share === "agents" && !isAgent(rootOf(file));
  const owners = isShared ? pads.filter((pad) => pad.path === path).map(({ owner }) => owner) : [];
  if (place.kind === "scratchpad") return { ...place, isOwn: true, owners: [...owners, actor.agent.owner] };
  return place.kind === "definition" && owners.length > 0 ? { kind: "scratchpad", isOwn: false, owners } : place;
}

/** True if an agent writes down the state of the conversation in which it works, for whomever; or people there do. */
const isOwnState = (file: FilePath, actor: Actor, isKept: boolean): boolean =>
  (actor.by === "model" || isKept || workingNameOf(file) === "NOW.md") && isOwnWorkingFile(file, actor);

/** True if it is a working file of the conversation. */
export const isOwnWorkingFile = (file: FilePath, { agent, roomId }: Actor): boolean => {
  const name = workingNameOf(file);
  return name !== undefined && workingFile({ agent: agent.name as AgentName, roomId }, name).path === file.path;
};

const isOnly = (people: readonly UserId[], person: UserId): boolean =>
  people.length > 0 && people.every((one) => one === person);

const viewer = ({ agent, roomId, requesters, sources }: Actor): FileViewer => ({
  agentUserId: agent.userId,
  owner: agent.owner,
  roomId,
  requesters,
  sources,
});

const computer: FilePath = { share: "sandbox", path: "/" };
/** End of a refusal that people can do something about. */
const allHeld =
  "all that the computer may hold. `!sandbox reset` removes it with all its files, and the next command gets a new one";

const closedError = (file: FilePath, actor: Actor, why: string): UserError =>
  new UserError(`${nameFor(actor, file)} is closed here: ${why}.`);

/** Why a path is closed whose first part names no room and no user. */
const nobodys = ({ share, path }: FilePath, what: string): string =>
  share === "rooms"
    ? `its first part names no room. A file of this room is written without a share: ${path.slice(1) || "notes.md"}`
    : what;
