import type { Clock } from "../../base/lib/clock.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";

export interface LatecomersParts {
  readonly events: Pick<Events, "answeredLater" | "answeredUnknown">;
  readonly outbox: Pick<Outbox, "echoesOf">;
  /** See `Reconciler`. */
  readonly readMissed: (userId: UserId, roomId: RoomId) => Promise<void>;
  readonly clock: Clock;
}

/**
 * Events that may have been answered before they come: what was missed, and what was said before our start. A restored
 * database is pushed such events once more, where the homeserver had no answer to its push.
 */
export class Latecomers {
  readonly #parts: LatecomersParts;
  readonly #startedAt: number;

  constructor(parts: LatecomersParts) {
    this.#parts = parts;
    this.#startedAt = parts.clock.now().getTime();
  }

  /** Whether an event is history: it was said before the agent came, or before something that it has said since. */
  async comesTooLate(event: StoredEvent, agent: Pick<Agent, "name" | "userId">, room: RoomContext): Promise<boolean> {
    const { events } = this.#parts;
    if (event.source === "sweep") {
      const since = room.agents.find(({ userId }) => userId === agent.userId)?.since ?? 0;
      return event.position < since || events.answeredLater(agent, event);
    }
    if (!this.#isOld(event)) return false;
    await this.#parts.readMissed(agent.userId, event.roomId);
    return events.answeredUnknown(agent, event);
  }

  /** Reads the room behind a command from before the start, so that it is carried out with all that is known by now. */
  async readBehind(event: StoredEvent, [agent]: readonly Pick<Agent, "userId">[]): Promise<void> {
    if (agent && this.#isOld(event)) await this.#parts.readMissed(agent.userId, event.roomId);
  }

  /** Leaves out of an event's effects what was said to it already, before the database was restored. */
  async unsaid(event: StoredEvent, effects: Effects): Promise<Effects> {
    const { roomId, source } = event;
    const { outbox = [] } = effects;
    if (outbox.length === 0 || (source !== "sweep" && !this.#isOld(event))) return effects;
    if (source !== "sweep") for (const { sender } of outbox) await this.#parts.readMissed(sender, roomId);
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
