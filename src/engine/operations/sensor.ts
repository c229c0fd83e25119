import type { Message } from "../../adapters/matrix/message.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { WakeReason } from "../../base/prompt/types.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";

/** Facts that a sensor may look at. */
export interface Scene {
  readonly agent: Agent;
  readonly event: StoredEvent;
  /** The event as a message, if it is one. */
  readonly message: Message | undefined;
  readonly room: RoomContext;
  /** Agents that are joined in the room, this one included. */
  readonly agentsHere: readonly Agent[];
  /** Sender of an event in the room, if it is known. */
  readonly senderOf: (eventId: EventId) => Promise<UserId | undefined>;
  /** Tells if the agent has said something in the thread. */
  readonly hasSpokenIn: (threadId: EventId) => Promise<boolean>;
}

/** Text from one agent to another. */
export interface Letter {
  readonly from: Agent;
  readonly to: Agent;
  readonly text: string;
  /** The human for whom it is told. */
  readonly onBehalfOf: UserId;
  readonly at: Date;
}

/** Something that an agent should know now: it wakes for it. */
interface Observation {
  readonly reason: WakeReason;
  /** Element that the agent is shown, where the cause is no event of a room. */
  readonly note?: Element;
}

/**
 * Notices what concerns an agent; nothing to say is `undefined`. A sensor has a method for what it is asked about.
 */
export interface Sensor {
  readonly name: string;
  readonly description: string;
  /**
   * Every event in the agent's rooms that somebody else sent. A sensor that throws is logged, and the event goes on to
   * the others; where it is what the scene asks that fails, the event is judged again.
   */
  notice?(scene: Scene): Promise<Observation | undefined>;
  /** Notices a letter of another agent. */
  receive?(letter: Letter): Observation | undefined;
}
