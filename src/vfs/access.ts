import type { Agents } from "../database/agents.ts";
import type { FileAccess, FileViewer } from "../database/file-access.ts";
import type { FileInfo } from "../database/files.ts";
import { UserError } from "../lib/errors.ts";
import { HOME, type RoomId, type UserId } from "../lib/ids.ts";
import { type FilePath, formatPath, rootOf, type ShareName } from "./path.ts";
import { type Actor, type Place, placeOf } from "./place.ts";

/**
 * Who may read and write which files: the one place where it is decided, anew at every access. What no rule opens is
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
        throw closed(file, "it needs the right to use");
      case "scratchpad":
        if (actor.uses || actor.by === "model") return undefined;
        throw closed(file, "it needs the right to use");
      case "walled": {
        const { present, entitled, open } = await this.#walls.rights(viewer(actor), place.source, file);
        if (!present) throw closed(file, "the agent has nothing to do with it");
        if (!entitled) throw closed(file, `${actor.requesters.join(", ")} may not read it`);
        if (!open) throw closed(file, "not everybody here may read it");
        return place.source;
      }
      case "closed":
        throw closed(file, "nobody may read it from here");
    }
  }

  /** Throws a `UserError` where the file may not be made, changed or removed. */
  async toWrite(file: FilePath, actor: Actor): Promise<void> {
    const place = await this.#place(file, actor);
    switch (place.kind) {
      case "system":
        if (actor.by === "person" && actor.admin) return;
        throw closed(file, "only admins write there, by a command");
      case "definition": {
        if (actor.by === "model") throw closed(file, "what defines an agent is written by people, by a command");
        const owner = (await this.#agents.owners([place.root])).get(place.root);
        if (actor.admin || (owner !== undefined && isOnly(actor.requesters, owner))) return;
        throw closed(file, owner === undefined ? "only admins write there" : "only its owner and admins write there");
      }
      case "scratchpad":
        if (isOnly(actor.requesters, actor.agent.owner)) return;
        throw closed(file, "the scratchpad is written only for the agent's owner");
      case "walled": {
        const { present, entitled, clean } = await this.#walls.rights(viewer(actor), place.source, file);
        if (!present) throw closed(file, "the agent has nothing to do with it");
        if (!entitled) throw closed(file, `${actor.requesters.join(", ")} may not write there`);
        if (!clean) throw closed(file, "those who can read there may not read all that was shown here");
        return;
      }
      case "closed":
        throw closed(file, "nobody may write there from here");
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
  async seen<File extends FileInfo>(
    share: ShareName,
    files: readonly File[],
    actor: Actor,
  ): Promise<{ files: File[]; sources: RoomId[] }> {
    const roots = [...new Set(files.map((file) => rootOf(file)))];
    const owners = share === "agents" ? await this.#agents.owners(roots) : new Map<string, UserId>();
    const places = files.map((file) => ({
      file,
      place: placeOf({ share, path: file.path }, actor, (name) => owners.has(name)),
    }));
    const hasHome = share === "agents" && places.some(({ place }) => place.kind === "walled");
    const sent = share === "rooms" ? files.filter(({ eventId }) => eventId !== null).map(({ path }) => path) : [];
    const early = new Set(sent.length > 0 ? await this.#walls.tooEarly(viewer(actor), share, sent) : []);
    const home = hasHome ? await this.#walls.rights(viewer(actor), HOME) : undefined;
    const visible = places.filter(
      ({ file, place }) =>
        place.kind === "system" ||
        (place.kind === "walled" && !early.has(file.path) && (home === undefined || (home.entitled && home.open))) ||
        (place.kind === "definition" && actor.uses) ||
        (place.kind === "scratchpad" && (actor.uses || actor.by === "model")),
    );
    const sources = visible.flatMap(({ place }) => (place.kind === "walled" ? place.source : []));
    return { files: visible.map(({ file }) => file), sources: [...new Set(sources)] };
  }

  async #place(file: FilePath, actor: Actor): Promise<Place> {
    const owners = file.share === "agents" ? await this.#agents.owners([rootOf(file)]) : undefined;
    return placeOf(file, actor, (name) => owners?.has(name) ?? false);
  }
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

const closed = (file: FilePath, why: string): UserError => new UserError(`${formatPath(file)} is closed here: ${why}.`);
