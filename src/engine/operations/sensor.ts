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

/** Time in which nothing has happened where an agent works. */
export interface Lull {
  readonly agent: Agent;
  /** When it was noticed. */
  readonly at: Date;
  /** Things that the agent has left open there; undefined: it has time for itself. */
  readonly open: OpenEnds | undefined;
}

/** Things that an agent has left open in a room where nobody says anything. */
export interface OpenEnds {
  readonly quietSeconds: number;
  /** When the agent has asked something, or said that it would do something; null: it did not. */
  readonly questionAt: Date | null;
  readonly promiseAt: Date | null;
  /** Numbers of its open todos. */
  readonly todos: readonly number[];
  /** Seconds until it is woken again, if it stays quiet; undefined: it is not. */
  readonly nextSeconds: number | undefined;
}

/** Something that an agent should know now: it wakes for it. */
export interface Observation {
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
  /** Notices that nothing has happened for long. */
  elapse?(lull: Lull): Observation | undefined;
}
