import type { Rights } from "../agent/rights.ts";
import type { Misplaced, Rooms } from "../database/rooms.ts";
import { messageOf } from "../lib/errors.ts";
import type { RoomId, UserId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { Mailbox } from "../lib/mailbox.ts";
import { HomeserverError, type MatrixClient } from "../matrix/client.ts";

export interface GuestListParts {
  readonly client: MatrixClient;
  readonly rights: Rights;
  readonly rooms: Rooms;
  /** The room that the configuration names: its members are the operator's business. */
  readonly configured: () => RoomId | undefined;
  readonly log: Log;
}

/** Sees to it that in rooms of the bridge's own there are those for whom they are: owners and admins, and nobody else. */
export class GuestList {
  readonly #parts: GuestListParts;
  readonly #mailbox: Mailbox<"one at a time">;
  #admins: readonly UserId[] = [];

  constructor(parts: GuestListParts) {
    this.#parts = parts;
    this.#mailbox = new Mailbox((_, error) => parts.log.warn(`members of the bridge's rooms: ${messageOf(error)}`));
  }

  /** From now on members follow the rights. */
  start(): void {
    this.#admins = this.#parts.rights.admins;
    this.#parts.rights.onChange(() => this.follow());
    this.follow();
  }

  follow(): void {
    this.#mailbox.post("one at a time", () => this.#follow());
  }

  stop(): Promise<void> {
    return this.#mailbox.idle();
  }

  async #follow(): Promise<void> {
    const { configured, rights, rooms } = this.#parts;
    const { admins } = rights;
    const promoted = admins.filter((admin) => !this.#admins.includes(admin));
    const control = await rooms.controlRoom();
    const misplaced = await rooms.misplaced(admins, promoted, control === configured() ? undefined : control);
    for (const one of misplaced) await this.#place(one);
    this.#admins = admins;
  }

  async #place({ roomId, userId, what }: Misplaced): Promise<void> {
    const { client, log } = this.#parts;
    const bot = { userId: client.botUserId };
    try {
      if (what === "invite") await client.invite(bot, roomId, userId);
      else await client.kick(bot, roomId, userId, "This room is for admins of the bridge, and for the agent's owner.");
    } catch (error) {
      if (!(error instanceof HomeserverError)) throw error;
      log.warn(`${what} ${userId}: ${error.message}`);
    }
  }
}
