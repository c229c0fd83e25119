import { HomeserverError } from "../../adapters/matrix/client.ts";
import { agentName, editTarget } from "../../adapters/matrix/message.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { digest, type UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Machine } from "../../domain/crypto/machine.ts";
import type { Machines } from "../../domain/crypto/machines.ts";
import { sessionOf, type Unsealed } from "../../domain/crypto/unseal.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { PendingEvent } from "../../domain/tables/events.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { SealedEvents } from "../../domain/tables/sealed-events.ts";
import { isPassing } from "./set-aside.ts";

/** Many events may wait for keys that came long ago or never come: for those the homeserver is not asked each time. */
const askEveryMs = 5_000;

export interface UnsealingParts {
  readonly machines: Pick<Machines, "run">;
  readonly sealed: Pick<SealedEvents, "isRepeated">;
  readonly serverName: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each event: `read`, `unreadable`, or why its key is not there. */
  readonly onUnsealed: (outcome: string) => void;
}

/** An event as it is to be judged, and what follows from its having been encrypted. */
export interface Opened {
  readonly event: PendingEvent;
  readonly effects: Pick<Effects, "unsealed" | "sealed" | "isUnreadable">;
}

/** Reads encrypted events between the inbox and the judge: from there on an event is what it says. */
export class Unsealing {
  readonly #parts: UnsealingParts;
  readonly #askedAt = new Map<UserId, number>();

  constructor(parts: UnsealingParts) {
    this.#parts = parts;
  }

  /** `room` is what is known of the event's room before it. */
  async open(event: PendingEvent, room: RoomContext): Promise<Opened> {
    if (event.type !== "m.room.encrypted" || event.stateKey !== null) return { event, effects: {} };
    const sessionId = sessionOf(event);
    // A redacted event says nothing: nobody waits for its key any more.
    if (sessionId === undefined) return this.#unreadable(event);
    let found: { readonly userId: UserId; readonly unsealed: Unsealed } | undefined;
    for (const userId of this.#readersOf(event, room)) {
      const unsealed = await this.#ask(userId, event);
      if (unsealed.state === "sealed") found ??= { userId, unsealed };
      else found = { userId, unsealed };
      if (unsealed.state === "read") return this.#read(event, unsealed);
    }
    if (found?.unsealed.state !== "sealed") return this.#unreadable(event);
    const { userId, unsealed } = found;
    this.#parts.onUnsealed(unsealed.reason);
    const reason = unsealed.reason === "withheld" ? `withheld: ${unsealed.said ?? ""}` : unsealed.reason;
    return { event, effects: { sealed: { sessionId, userId, reason } } };
  }

  /** The agent who said it; otherwise whoever of ours is there, one after the other. */
  #readersOf({ sender }: PendingEvent, { agents }: RoomContext): UserId[] {
    const joined = agents.filter(({ membership }) => membership === "join").map(({ userId }) => userId);
    const isOurs = agentName(sender, this.#parts.serverName) !== undefined;
    return isOurs ? [sender, ...joined.filter((userId) => userId !== sender)] : joined;
  }

  /** @throws RetryError or HomeserverError where it is to be tried again as it is */
  async #ask(userId: UserId, event: PendingEvent): Promise<Unsealed> {
    try {
      return await this.#parts.machines.run(userId, async (machine) => {
        const unsealed = await machine.unseal(event);
        if (unsealed.state !== "sealed" || !this.#mayAsk(userId, event)) return unsealed;
        await this.#pull(machine);
        return machine.unseal(event);
      });
    } catch (error) {
      if (isPassing(error)) throw error;
      this.#parts.log.warn({ err: error, agent: userId, event: event.eventId }, `not decrypted: ${messageOf(error)}`);
      return { state: "unreadable", reason: messageOf(error) };
    }
  }

  #mayAsk(userId: UserId, { source }: PendingEvent): boolean {
    const since = this.#parts.clock.monotonic() - (this.#askedAt.get(userId) ?? Number.NEGATIVE_INFINITY);
    return source === "push" || since > askEveryMs;
  }

  async #pull(machine: Machine): Promise<void> {
    this.#askedAt.set(machine.userId, this.#parts.clock.monotonic());
    await machine.pull().catch((error: unknown) => {
      // Whom the homeserver refuses will have no keys; others may.
      if (!(error instanceof HomeserverError && error.isFinal)) throw error;
    });
  }

  async #read(event: PendingEvent, { content, type }: Unsealed & { state: "read" }): Promise<Opened> {
    const cipher = digestOf(event);
    if (await this.#parts.sealed.isRepeated(cipher, event.eventId)) return this.#unreadable(event);
    const replaces = editTarget({ type, content }) ?? null;
    this.#parts.onUnsealed("read");
    return {
      event: { ...event, type, content, replaces, isEncrypted: true },
      effects: { unsealed: { type, content: content as never, replaces, cipher } },
    };
  }

  #unreadable(event: PendingEvent): Opened {
    this.#parts.onUnsealed("unreadable");
    return { event, effects: { isUnreadable: true } };
  }
}

const signatureBytes = 64;

/** Digest of what was encrypted, however its bytes are written, and whatever stands behind them. */
const digestOf = ({ content }: PendingEvent): string =>
  digest(
    String(content.session_id),
    Buffer.from(String(content.ciphertext), "base64").subarray(0, -signatureBytes).toString("base64"),
  );
