import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import { readPowerLevels } from "../../adapters/matrix/state.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { Mailbox } from "../../base/lib/mailbox.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Guests, Misplaced } from "../../domain/tables/guests.ts";
import type { JoinRules } from "../../domain/tables/join-rules.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";

/** Power that whoever invites into a room of the bridge's own must have; the bot alone has any. */
export const inviteLevel = 50;

export interface GuestListParts {
  readonly client: MatrixClient;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly guests: Guests;
  readonly joinRules: JoinRules;
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
    const { configured, guests, joinRules, rights, rooms } = this.#parts;
    const { admins } = rights;
    const promoted = admins.filter((admin) => !this.#admins.includes(admin));
    const control = await rooms.controlRoom();
    for (const roomId of await joinRules.findLooseRooms(inviteLevel)) await this.#shut(roomId);
    const misplaced = await guests.findMisplaced(admins, promoted, control === configured() ? undefined : control);
    for (const one of misplaced) await this.#place(one);
    this.#admins = admins;
  }

  /** In rooms that were made when anybody in them could invite, it is taken from them. */
  async #shut(roomId: RoomId): Promise<void> {
    const { client, log } = this.#parts;
    const bot = { userId: client.botUserId };
    try {
      const content = await client.powerLevels(bot, roomId);
      if (readPowerLevels(content).invite >= inviteLevel) return;
      await client.sendState(bot, roomId, {
        type: "m.room.power_levels",
        stateKey: "",
        content: { ...content, invite: inviteLevel },
      });
    } catch (error) {
      if (!(error instanceof HomeserverError)) throw error;
      log.warn(`who may invite into ${roomId}: ${error.message}`);
    }
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
