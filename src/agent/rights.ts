import type { Rooms } from "../database/rooms.ts";
import type { RoomId, UserId } from "../lib/ids.ts";
import { actorKind, type Level, levelOf, levels, type Permissions } from "./permissions.ts";

/** Who may do what on this bridge, now. */
export class Rights {
  readonly #permissions: Permissions;
  readonly #rooms: Rooms;
  readonly #roomActors: readonly RoomId[];

  constructor(permissions: Permissions, rooms: Rooms) {
    this.#permissions = permissions;
    this.#rooms = rooms;
    this.#roomActors = Object.keys(permissions).filter((actor) => actorKind(actor) === "room") as RoomId[];
  }

  async of(userId: UserId): Promise<Level> {
    const joined = this.#roomActors.length > 0 ? await this.#rooms.joinedRooms(userId) : [];
    return levelOf(this.#permissions, userId, (roomId) => joined.includes(roomId));
  }

  /** The least of what several may do; nobody may do nothing. */
  async leastOf(userIds: readonly UserId[]): Promise<Level> {
    const all = await Promise.all(userIds.map((userId) => this.of(userId)));
    return levels.find((level) => all.includes(level)) ?? "none";
  }

  /** Everybody who is named an admin by full id. */
  get admins(): readonly UserId[] {
    return Object.entries(this.#permissions)
      .filter(([actor, level]) => level === "admin" && actorKind(actor) === "user")
      .map(([actor]) => actor as UserId);
  }
}
