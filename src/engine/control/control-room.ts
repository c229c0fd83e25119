import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { type AgentName, digest, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { Outbox, OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { inviteLevel } from "./guest-list.ts";

/** Notices to operators within the time below; what is beyond stands in the log alone. */
const noticesMost = 20;
const noticesWithinMs = 10 * 60_000;

export interface ControlRoomParts {
  readonly prefix: string;
  readonly serverName: string;
  /** The room that the configuration names. */
  readonly configured: () => RoomId | undefined;
  readonly client: MatrixClient;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly log: Log;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Something by which somebody turns to the bridge bot. */
export interface Approach {
  readonly roomId: RoomId;
  readonly by: UserId;
  /** Equal for one event. */
  readonly key: string;
}

/**
 * The room in which admins command the bridge and hear of trouble. The configuration names it, or the bot makes it
 * for the first admin who invites it or writes to it.
 */
export class ControlRoom {
  readonly #parts: ControlRoomParts;
  #noticed = { since: Number.NEGATIVE_INFINITY, count: 0 };

  constructor(parts: ControlRoomParts) {
    this.#parts = parts;
  }

  /** Takes up the room that the configuration names; says in the log why it cannot. */
  async adopt(): Promise<void> {
    const { client, configured, log, rooms } = this.#parts;
    const roomId = configured();
    if (roomId === undefined) return;
    await rooms.setControlRoom(roomId);
    if ((await rooms.membership(roomId, client.botUserId)) === "join") return;
    await client.join({ userId: client.botUserId }, roomId).catch((error: unknown) => {
      log.warn(`controlRoom: invite ${client.botUserId} into ${roomId}; it cannot join by itself: ${messageOf(error)}`);
    });
  }

  /** Told to those who run the bridge: once for a key, and not too much at a time. Never throws. */
  readonly tellOperators = (text: string, key: string): void => {
    const { clock, log } = this.#parts;
    const now = clock.monotonic();
    if (now - this.#noticed.since > noticesWithinMs) this.#noticed = { since: now, count: 0 };
    const count = ++this.#noticed.count;
    log.info({ notice: text }, "for the control room");
    if (count > noticesMost) return;
    const more = count === noticesMost ? "\n\nMore of this stands in the log alone for the next ten minutes." : "";
    this.#tell(`${text}${more}`, digest("operators", key)).catch((error: unknown) =>
      log.warn(`the control room was not told: ${messageOf(error)}`),
    );
  };

  /** Admins may have the bot in their rooms; others are told why not. */
  async onInvite({ roomId, by, key }: Approach): Promise<OutboxDraft[]> {
    const { client, configured, rights, rooms } = this.#parts;
    const draft = { key: digest("bot invite", key), roomId, sender: client.botUserId };
    const level = await rights.of(by);
    if (!includesLevel(level, "admin")) {
      const reason = `Only admins of this bridge may invite its bot; ${by} has: ${level}. Invite an agent instead.`;
      return [{ ...draft, kind: "leave", content: { reason } }];
    }
    if (roomId === configured()) await rooms.setControlRoom(roomId);
    return [{ ...draft, kind: "join", content: {} }, ...(await this.#explain(roomId, by))];
  }

  /** An admin says something where no agent listens. */
  async onMessage({ roomId, by }: Approach): Promise<OutboxDraft[]> {
    const isAdmin = includesLevel(await this.#parts.rights.of(by), "admin");
    return isAdmin ? this.#explain(roomId, by) : [];
  }

  /** Somebody invites an agent that does not exist: who may create it is asked to. */
  async onUnknownAgent(name: AgentName, { roomId, by, key }: Approach): Promise<OutboxDraft[]> {
    const { prefix, rights } = this.#parts;
    if (!includesLevel(await rights.of(by), "admin")) return [];
    const control = await this.#open(by);
    if (control === undefined) return [];
    const text = `${by} has invited the agent ${name} into ${roomId}, and there is none of this name. To make it, and to let it come: \`${prefix}agent create ${name}\``;
    return this.#say(control, text, digest("unknown agent", name, key));
  }

  /**
   * Somebody of this homeserver was told that they may not talk to agents: those who run the bridge hear of each once.
   * Whom a rule names with `none` they know, and of other homeservers there may come any number.
   */
  async onClosedDoor({ roomId, by }: Approach): Promise<OutboxDraft[]> {
    const { prefix, rights, rooms, serverName } = this.#parts;
    if (splitUserId(by).server !== serverName || (await rights.ignores(by))) return [];
    const control = await rooms.controlRoom();
    if (control === undefined) return [];
    const text = `${by} wants to talk to an agent (in ${roomId}), and was told that they may not. To let them: \`${prefix}permission set ${by} chat\``;
    return this.#say(control, text, digest("closed door", by));
  }

  async #explain(roomId: RoomId, admin: UserId): Promise<OutboxDraft[]> {
    const { client, prefix } = this.#parts;
    const control = await this.#open(admin);
    const hello = `I am ${client.botUserId}, the bot of this bridge.`;
    const text =
      control === undefined
        ? `${hello} I could not make a control room; the log says why.`
        : control === roomId
          ? `${hello} In this room admins command the bridge: \`${prefix}help\` lists what can be said. What goes wrong is told here, too.`
          : `${hello} The bridge is commanded in the control room, into which I have invited you: https://matrix.to/#/${control}`;
    return this.#say(roomId, text, digest("hello", roomId, control ?? ""));
  }

  /** The control room, made if there is none, with this admin in it. */
  async #open(admin: UserId): Promise<RoomId | undefined> {
    const { client, log, rights, rooms, serverName } = this.#parts;
    const bot = { userId: client.botUserId };
    try {
      const known = await rooms.controlRoom();
      if (known !== undefined) {
        const membership = await rooms.membership(known, admin);
        if (membership !== "join" && membership !== "invite") await client.invite(bot, known, admin);
        return known;
      }
      const roomId = await client.ownRoom("clevernet_control", serverName, {
        preset: "private_chat",
        name: "Clevernet: control room",
        topic: "Admins command the bridge here.",
        invite: [...new Set([admin, ...rights.admins])],
        power_level_content_override: { invite: inviteLevel },
      });
      await rooms.setControlRoom(roomId);
      await this.#parts.outbox.add(
        this.#say(
          roomId,
          `In this room admins command the bridge: \`${this.#parts.prefix}help\` lists what can be said. What goes wrong is told here, too.`,
          digest("hello", roomId, roomId),
        ),
      );
      this.#parts.onOutbox([roomId]);
      return roomId;
    } catch (error) {
      if (!(error instanceof HomeserverError && error.isFinal)) throw error;
      log.warn(`the control room: ${messageOf(error)}`);
      return rooms.controlRoom();
    }
  }

  async #tell(text: string, key: string): Promise<void> {
    const { outbox, rooms, onOutbox } = this.#parts;
    const roomId = await rooms.controlRoom();
    if (roomId === undefined) return;
    await outbox.add(this.#say(roomId, text, key));
    onOutbox([roomId]);
  }

  #say(roomId: RoomId, text: string, key: string): OutboxDraft[] {
    return utter({ sender: this.#parts.client.botUserId, roomId, text, isNotice: true, key });
  }
}
