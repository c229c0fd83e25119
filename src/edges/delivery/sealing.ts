import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { editTarget } from "../../adapters/matrix/message.ts";
import { asAnswer } from "../../adapters/matrix/relation.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Machines } from "../../domain/crypto/machines.ts";
import { mustBeSealed } from "../../domain/speech/plain-text.ts";
import type { CryptoMachines } from "../../domain/tables/crypto-machines.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { Outbox, OutboxDraft, OutboxRow } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { RoomSecrecy } from "../../domain/tables/secrecy.ts";

interface SealingParts {
  readonly client: MatrixClient;
  readonly machines: Pick<Machines, "run">;
  readonly outbox: Pick<Outbox, "freeze">;
  readonly events: Pick<Events, "find">;
  readonly table: Pick<CryptoMachines, "findUnpublished">;
  readonly rooms: Pick<Rooms, "isEncrypted" | "isUnwritable">;
  readonly secrecyOf: (roomId: RoomId) => Promise<RoomSecrecy>;
}

/** Way to send into a room; `closed`: the room is encrypted, and the sender can write nothing there. */
type Way = "plain" | "sealed" | "closed";

type Content = Readonly<Record<string, unknown>>;

/** An event as it goes to the homeserver. */
interface Wire {
  readonly type: "m.room.message" | "m.room.encrypted";
  readonly content: Record<string, unknown>;
}

/** Marks of ours in a message, which stand beside its ciphertext as well: our own events are known again by them. */
const isMark = (name: string): boolean => name.startsWith("org.clevernet.");

/** Encrypts what agents say in encrypted rooms, at the last moment before it is sent. */
export class Sealing {
  readonly #parts: SealingParts;
  /** Rooms of which the homeserver says itself whether they are encrypted. */
  readonly #asked = new Map<RoomId, boolean>();
  /** Users who have a device. */
  readonly #prepared = new Set<UserId>();

  constructor(parts: SealingParts) {
    this.#parts = parts;
  }

  /** The homeserver was away: rooms may have become encrypted without our knowing. */
  doubt(): void {
    for (const [roomId, isEncrypted] of this.#asked) if (!isEncrypted) this.#asked.delete(roomId);
  }

  /** To be called before an agent comes into a room: who is there may write to it at once. */
  async prepare(userId: UserId): Promise<void> {
    const { client, machines, table } = this.#parts;
    if (userId === client.botUserId || this.#prepared.has(userId)) return;
    if ((await table.findUnpublished([userId])).size > 0) await machines.run(userId, async () => {});
    this.#prepared.add(userId);
  }

  /** To be asked directly before a row is sent. */
  async wayOf(row: OutboxDraft & Partial<Pick<OutboxRow, "wire">>): Promise<Way> {
    if (row.wire) return "sealed";
    return mustBeSealed(row) ? this.#wayInto(row.roomId, row.sender) : "plain";
  }

  /** A row's message in the form in which it is sent however often; it is made once. */
  async wireOf(row: OutboxDraft, content: Content): Promise<Wire> {
    const sealed = await this.#seal(row.sender, row.roomId, await this.#shown(content));
    const marks = Object.entries(content).filter(([name]) => isMark(name));
    const wire = { ...sealed, ...Object.fromEntries(marks.map(([name, value]) => [name, shownMark(value)])) };
    return { type: "m.room.encrypted", content: await this.#parts.outbox.freeze(row.key, wire) };
  }

  /**
   * A message that is sent once, as it is.
   * @throws Error where it may not be sent at all
   */
  async once(sender: UserId, roomId: RoomId, content: Content): Promise<Wire> {
    const way = await this.#wayInto(roomId, sender);
    if (way === "closed") throw new Error("the room is encrypted, and cannot be written in");
    if (way === "plain") return { type: "m.room.message", content };
    return { type: "m.room.encrypted", content: await this.#seal(sender, roomId, content) };
  }

  async #wayInto(roomId: RoomId, sender: UserId): Promise<Way> {
    const { client, rooms } = this.#parts;
    if (!((await rooms.isEncrypted(roomId)) || (await this.#homeserverSays(roomId, sender)))) return "plain";
    // Synapse lets nobody of ours but agents have messages to their devices.
    return sender === client.botUserId || (await rooms.isUnwritable(roomId)) ? "closed" : "sealed";
  }

  async #homeserverSays(roomId: RoomId, sender: UserId): Promise<boolean> {
    const wasEncrypted = this.#asked.get(roomId);
    if (wasEncrypted !== undefined) return wasEncrypted;
    const isEncrypted = await this.#parts.client.hasState({ userId: sender }, roomId, "m.room.encryption");
    this.#asked.set(roomId, isEncrypted);
    return isEncrypted;
  }

  /** Makes an edit of plain text a message of its own: homeservers and clients pass over encrypted edits of it. */
  async #shown(content: Content): Promise<Content> {
    const target = editTarget({ type: "m.room.message", content });
    const original = target && (await this.#parts.events.find(target));
    const isPlain = original?.type === "m.room.message" && !original.isEncrypted;
    return isPlain ? asAnswer(content, original.eventId) : content;
  }

  async #seal(sender: UserId, roomId: RoomId, content: Content): Promise<Record<string, unknown>> {
    const room = { roomId, ...(await this.#parts.secrecyOf(roomId)) };
    return this.#parts.machines.run(sender, (machine) => machine.seal(room, { type: "m.room.message", content }));
  }
}

/** Only that it is there, where it may say something. */
const shownMark = (value: unknown): unknown => (typeof value === "string" ? value : true);
