import type { Notifier } from "../../adapters/database/notify.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { AuditRow, Change } from "../tables/audit.ts";
import type { PermissionRow, PermissionTable } from "../tables/permissions.ts";
import type { Rooms } from "../tables/rooms.ts";
import { actorKind, includesLevel, type Level, levels, type Permissions, ruleFor } from "./permissions.ts";

/**
 * Knows who may do what on this bridge, now. The permissions are kept in memory, since every event needs them; all
 * processes are told of a change at once. Until they are read, nobody may do anything.
 */
export class Rights {
  readonly #table: PermissionTable;
  readonly #rooms: Rooms;
  readonly #notifier: Notifier;
  readonly #hearers: (() => void)[] = [];
  #permissions: Permissions = {};
  #asked = 0;
  #answered = 0;
  #roomActors: readonly RoomId[] = [];

  constructor(table: PermissionTable, rooms: Rooms, notifier: Notifier) {
    this.#table = table;
    this.#rooms = rooms;
    this.#notifier = notifier;
    // If the database cannot be read now, the next notification reads it: one comes when the connection is back.
    notifier.on("permissions", () => void this.#read().catch(() => {}));
  }

  /** Takes over what the configuration says wherever nobody has set anything else by hand. */
  async configure(configured: Permissions): Promise<void> {
    await this.#table.configure(configured);
    await this.#tellChanged();
  }

  /**
   * Sets a level by hand, or with null takes it away; in force when it resolves.
   * @throws UserError where nobody would be left who is named an admin
   */
  async set(actor: string, level: Level | null, change: Pick<Change, "key" | "actor">): Promise<AuditRow> {
    const done = await this.#table.set(actor, level, change);
    if (!done) {
      throw new UserError(
        `${actor} is the last who is named an admin, and stays one: name another first, by full user id.`,
      );
    }
    await this.#tellChanged();
    return done;
  }

  rows(): Promise<PermissionRow[]> {
    return this.#table.all();
  }

  /** Calls when anybody's rights may have changed. */
  onChange(hear: () => void): void {
    this.#hearers.push(hear);
  }

  async of(userId: UserId): Promise<Level> {
    return (await this.#ruleFor(userId)) ?? "none";
  }

  /** Somebody has said `none` of them: what they say is shown to no agent, and answered by none. */
  async ignores(userId: UserId): Promise<boolean> {
    return (await this.#ruleFor(userId)) === "none";
  }

  /** The least of what several may do; nobody may do nothing. */
  async leastOf(userIds: readonly UserId[]): Promise<Level> {
    return (await this.weakestOf(userIds)).level;
  }

  /** The one of several who may do the least, the first of equals, and how much that is. */
  async weakestOf(userIds: readonly UserId[]): Promise<{ userId: UserId | undefined; level: Level }> {
    const all = await Promise.all(userIds.map((userId) => this.of(userId)));
    const level = levels.find((one) => all.includes(one)) ?? "none";
    return { userId: userIds[all.indexOf(level)], level };
  }

  /** Chooses the users who do not reach the level; in one statement at most. */
  async findBelow(level: Level, userIds: readonly UserId[]): Promise<UserId[]> {
    const isConcerned = this.#roomActors.length > 0 && userIds.length > 0;
    const joined = isConcerned ? await this.#rooms.joinedAmong(this.#roomActors, userIds) : [];
    return userIds.filter((userId) => {
      const isIn = (roomId: RoomId) => joined.some((one) => one.userId === userId && one.roomId === roomId);
      return !includesLevel(ruleFor(this.#permissions, userId, isIn) ?? "none", level);
    });
  }

  /** Everybody who is named an admin by full id. */
  get admins(): readonly UserId[] {
    return Object.entries(this.#permissions)
      .filter(([actor, level]) => level === "admin" && actorKind(actor) === "user")
      .map(([actor]) => actor as UserId);
  }

  async #ruleFor(userId: UserId): Promise<Level | undefined> {
    const joined = this.#roomActors.length > 0 ? await this.#rooms.joinedRooms(userId) : [];
    return ruleFor(this.#permissions, userId, (roomId) => joined.includes(roomId));
  }

  async #tellChanged(): Promise<void> {
    await this.#read();
    this.#notifier.tell("permissions");
  }

  async #read(): Promise<void> {
    const question = ++this.#asked;
    const rows = await this.#table.all();
    if (question < this.#answered) return;
    this.#answered = question;
    this.#permissions = Object.fromEntries(
      rows.flatMap(({ actor, level }) => (level === null ? [] : [[actor, level as Level]])),
    );
    this.#roomActors = Object.keys(this.#permissions).filter((actor) => actorKind(actor) === "room") as RoomId[];
    for (const hear of this.#hearers) hear();
  }
}

/** Lists the permissions that were set by hand and differ from the configuration, a line each. */
export const differencesOf = (rows: readonly PermissionRow[], configured: Permissions): string[] =>
  rows
    .filter((row) => row.setBy !== null && row.level !== (configured[row.actor] ?? null))
    .map(
      ({ actor, level, setBy }) =>
        `permission of ${actor}: ${level ?? "taken away"} (set by ${setBy}), in the configuration: ${configured[actor] ?? "none"}`,
    );
