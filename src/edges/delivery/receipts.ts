import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";

/** Delay of a receipt. An answer within this time makes it needless: clients take it that the message was read. */
const delayMs = 300;

/** Shows people what an agent has read. As with typing, nothing depends on it: what fails is not repeated. */
export class Receipts {
  readonly #client: Pick<MatrixClient, "receipt">;
  readonly #clock: Clock;
  /** Events that are about to be shown as read, by user and room: the last one counts. */
  readonly #pending = new Map<string, { readonly eventId: EventId; readonly answered: () => boolean }>();

  constructor(client: Pick<MatrixClient, "receipt">, clock: Clock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** The user has read the room up to this event. `answered` is asked when it is to be shown. */
  read(userId: UserId, roomId: RoomId, eventId: EventId, answered: () => boolean): void {
    const key = `${userId} ${roomId}`;
    const isWaiting = this.#pending.has(key);
    this.#pending.set(key, { eventId, answered });
    if (!isWaiting) void this.#show(key, userId, roomId);
  }

  async #show(key: string, userId: UserId, roomId: RoomId): Promise<void> {
    await this.#clock.sleep(delayMs);
    const read = this.#pending.get(key);
    this.#pending.delete(key);
    if (read && !read.answered()) await this.#client.receipt({ userId }, roomId, read.eventId).catch(() => {});
  }
}
