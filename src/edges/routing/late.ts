import type { Clock } from "../../base/lib/clock.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";

export interface LatecomersParts {
  readonly events: Pick<Events, "hasAnsweredLater" | "hasAnsweredUnknown">;
  readonly outbox: Pick<Outbox, "echoesOf">;
  /** See `Reconciler`. */
  readonly readMissed: (userId: UserId, roomId: RoomId) => Promise<void>;
  readonly clock: Clock;
  readonly botUserId: UserId;
}

/**
 * Events that may have been answered before they come: what was missed, and what was said before our start. A restored
 * database is pushed such events once more, where the homeserver had no answer to its push.
 */
export class Latecomers {
  readonly #parts: LatecomersParts;
  readonly #startedAt: number;
  /** Rooms that were read. */
  readonly #read = new Set<RoomId>();

  constructor(parts: LatecomersParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now().getTime();
  }

  /** True if an event is history: it was said before the agent came, or before something that the agent has said since. */
  async comesTooLate(event: StoredEvent, agent: Pick<Agent, "name" | "userId">, room: RoomContext): Promise<boolean> {
    const { events } = this.#parts;
    if (event.source === "sweep") {
      const since = room.agents.find(({ userId }) => userId === agent.userId)?.since ?? 0;
      return event.position < since || events.hasAnsweredLater(agent, event);
    }
    return this.#isOld(event) && events.hasAnsweredUnknown(agent, event);
  }

  /**
   * Reads the room of a message from before our start, once for each room: others may stand before and behind the message,
   * and are routed with it, in their order. One that was found by a sweep may be all that a copy of the database has of
   * it. Returns whether it did.
   */
  async readRoom(event: StoredEvent, { agents, hasBotJoined }: RoomContext): Promise<boolean> {
    const { roomId, source } = event;
    if (source === "history" || !isMessage(event) || !this.#isOld(event) || this.#read.has(roomId)) return false;
    const joined = agents.filter(({ membership }) => membership === "join");
    const [first] = joined.toSorted((one, other) => (one.since ?? 0) - (other.since ?? 0));
    const userId = first?.userId ?? (hasBotJoined ? this.#parts.botUserId : undefined);
    if (userId === undefined) return false;
    await this.#parts.readMissed(userId, roomId);
    this.#read.add(roomId);
    return true;
  }

  /** Leaves out of an event's effects what was said to it already, before the database was restored. */
  async unsaid(event: StoredEvent, effects: Effects): Promise<Effects> {
    const { roomId, source } = event;
    const { outbox = [] } = effects;
    if (outbox.length === 0 || (source !== "sweep" && !this.#isOld(event))) return effects;
    const said = await this.#parts.outbox.echoesOf(
      roomId,
      outbox.map(({ key }) => key),
    );
    return said.size === 0 ? effects : { ...effects, outbox: outbox.filter(({ key }) => !said.has(key)) };
  }

  #isOld({ sentAt }: StoredEvent): boolean {
    return sentAt.getTime() < this.#startedAt;
  }
}

const isMessage = ({ type }: StoredEvent): boolean => type === "m.room.message" || type === "m.room.encrypted";
