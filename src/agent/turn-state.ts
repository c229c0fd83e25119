import type { OutboxDraft } from "../database/outbox.ts";
import type { Turn } from "../database/turns.ts";
import { digest, type EventId, type RoomId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import type { ShownImage } from "../model/images.ts";
import type { Agent } from "./agent.ts";
import type { Mind } from "./mind.ts";
import type { Journal } from "./step.ts";
import type { Thread } from "./thread.ts";

/** A turn at work: what it works with, and how far it has come. */
export interface TurnState {
  readonly mind: Mind;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly journal: Journal;
  readonly signal: AbortSignal;
  /** What its steps are sent. */
  readonly thread: Thread;
  /** Thoughts, calls and results of this turn so far. */
  readonly entries: Element[];
  /** Whatever the model has been shown in this turn, as `may_read` names it. */
  sources: readonly RoomId[];
  /** People in the conversation's room have heard the agent in this turn. */
  spoke: boolean;
  /** People have been told up to where the agent has read. */
  read: boolean;
  /** Events whose files were waited for. */
  readonly awaited: Set<EventId>;
  /** Images that were shown, by the event that they came with; undefined where one cannot be shown. */
  readonly images: Map<EventId, ShownImage | undefined>;
  /** The agent was told that nobody has heard it. */
  reminded: boolean;
  /** Calls that were made so far: their ids rise through the turn. */
  calls: number;
}

/** Key of what step `n` of the turn sends. */
export const keyOfStep = ({ agent, turn }: TurnState, n: number): string => digest("turn", agent.userId, turn.id, n);

/** Id under which the agent is shown its call number `number` of the turn, from 1. */
export const callId = ({ turn }: TurnState, number: number): string => `fc${turn.number}.${number}`;

export const addSources = (state: TurnState, sources: readonly RoomId[]): void => {
  state.sources = [...new Set([...state.sources, ...sources])];
};

/** Tells those who deliver and those who show thoughts that a step was written. */
export const announce = ({ mind, agent }: TurnState, outbox: readonly OutboxDraft[]): void => {
  mind.onThought(agent.name);
  if (outbox.length > 0) mind.onOutbox(outbox.map((draft) => draft.roomId));
};
