import { UserError } from "../../base/lib/errors.ts";
import { HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agents } from "../tables/agents.ts";
import type { FileAccess, FileViewer, Scratchpad } from "../tables/file-access.ts";
import type { FileInfo } from "../tables/files.ts";
import { type FilePath, formatPath, rootOf, type ShareName } from "./path.ts";
import { type Actor, nameFor, type Place, placeOf } from "./place.ts";

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

  /** Returns what will have been shown once the file is read, if there is a wall around it. Throws a `UserError`. */
  async toRead(file: FilePath, actor: Actor): Promise<RoomId | undefined> {
    const place = await this.#place(file, actor);
    switch (place.kind) {
      case "system":
        return undefined;
      case "definition":
        if (actor.uses) return undefined;
        throw closedError(file, actor, "it needs the right to use");
      case "scratchpad":
        if (await this.#readsScratchpads(place.owners, actor)) return HOME;
        throw closedError(file, actor, "a scratchpad is read by the agent's owner alone");
      case "walled": {
        const { present, entitled, open } = await this.#walls.rights(viewer(actor), place.source, file);
        if (!present) throw closedError(file, actor, "the agent has nothing to do with it");
        if (!entitled) throw closedError(file, actor, `${actor.requesters.join(", ")} may not read it`);
        if (!open) throw closedError(file, actor, "not everybody here may read it");
        return place.source;
      }
      case "closed":
        throw closedError(file, actor, nobodys(file, "nobody may read it from here"));
    }
  }

  /** Throws a `UserError` where the file may not be made, changed or removed. */
  async toWrite(file: FilePath, actor: Actor): Promise<void> {
    const place = await this.#place(file, actor);
    switch (place.kind) {
      case "system":
        if (actor.by === "person" && actor.admin) return;
        throw closedError(file, actor, "only admins write there, by a command");
      case "definition": {
        if (actor.by === "model")
          throw closedError(file, actor, "what defines an agent is written by people, by a command");
        const owner = (await this.#agents.owners([place.root])).get(place.root);
        if (actor.admin || (owner !== undefined && isOnly(actor.requesters, owner))) return;
        throw closedError(
          file,
          actor,
          owner === undefined ? "only admins write there" : "only its owner and admins write there",
        );
      }
      case "scratchpad":
        if (place.own && isOnly(actor.requesters, actor.agent.owner)) return;
        if (!place.own && actor.by === "person" && actor.admin) return;
        throw closedError(file, actor, "a scratchpad is written by its agent, for the agent's owner");
      case "walled": {
        const { present, entitled, clean } = await this.#walls.rights(viewer(actor), place.source, file);
        if (!present) throw closedError(file, actor, "the agent has nothing to do with it");
        if (!entitled) throw closedError(file, actor, `${actor.requesters.join(", ")} may not write there`);
        if (!clean) throw closedError(file, actor, "those who can read there may not read all that was shown here");
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
        [...new Set(pad)].map(async (owner) => [owner, await this.#readsScratchpads([owner], actor)] as const),
      ),
    );
    const hasHome = share === "agents" && places.some(({ place }) => place.kind === "walled");
    const inRooms = share === "rooms" ? files.map(({ path }) => path) : [];
    const early = new Set(inRooms.length > 0 ? await this.#walls.tooEarly(viewer(actor), share, inRooms) : []);
    const home = hasHome ? await this.#walls.rights(viewer(actor), HOME) : undefined;
    const visible = places.filter(
      ({ file, place }) =>
        place.kind === "system" ||
        (place.kind === "walled" && !early.has(file.path) && (home === undefined || (home.entitled && home.open))) ||
        (place.kind === "definition" && actor.uses) ||
        (place.kind === "scratchpad" && place.owners.every((owner) => readsPads.get(owner))),
    );
    const sources = visible.flatMap(({ place }) =>
      place.kind === "walled" ? place.source : place.kind === "scratchpad" ? HOME : [],
    );
    return { files: visible.map(({ file }) => file), sources: [...new Set(sources)] };
  }

  async #place(file: FilePath, actor: Actor): Promise<WithPads> {
    if (file.share !== "agents") return withPads(file, actor, () => false, []);
    const owners = await this.#agents.owners([rootOf(file)]);
    const pads = owners.has(rootOf(file)) ? [] : await this.#walls.scratchpads();
    return withPads(file, actor, (name) => owners.has(name), pads);
  }

  /** A scratchpad has the wall of the home of whoever's agents write it. */
  async #readsScratchpads(owners: readonly UserId[], actor: Actor): Promise<boolean> {
    if (!owners.every((owner) => owner === actor.agent.owner)) return false;
    const { entitled, open } = await this.#walls.rights(viewer(actor), HOME);
    return entitled && open;
  }
}

type WithPads =
  | Exclude<Place, { kind: "scratchpad" }>
  | {
      readonly kind: "scratchpad";
      /** True if it is the actor's. */
      readonly own: boolean;
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
  if (place.kind === "scratchpad") return { ...place, own: true, owners: [...owners, actor.agent.owner] };
  return place.kind === "definition" && owners.length > 0 ? { kind: "scratchpad", own: false, owners } : place;
}

const isOnly = (people: readonly UserId[], person: UserId): boolean =>
  people.length > 0 && people.every((one) => one === person);

const viewer = ({ agent, roomId, requesters, sources }: Actor): FileViewer => ({
  agentUserId: agent.userId,
  owner: agent.owner,
  roomId,
  requesters,
  sources,
});

const closedError = (file: FilePath, actor: Actor, why: string): UserError =>
  new UserError(`${nameFor(actor, file)} is closed here: ${why}.`);

/** Why a path is closed whose first part names no room and no user. */
const nobodys = ({ share, path }: FilePath, what: string): string =>
  share === "rooms"
    ? `its first part names no room. A file of this room is written without a share: ${path.slice(1) || "notes.md"}`
    : what;
