import type { WakeDraft } from "../database/routing.ts";
import { type LogState, taintMost } from "../database/steps.ts";
import type { TakenWake, Turn } from "../database/turns.ts";
import { digest, type EventId, type RoomId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import type { ShownImage } from "../model/images.ts";
import type { Agent } from "./agent.ts";
import type { Exchange, StepPrompt } from "./exchange.ts";
import type { Mind } from "./mind.ts";
import type { Journal } from "./step.ts";
import type { ToolOutcome } from "./tool.ts";

/** What a step shows. */
interface Look {
  readonly prompt: StepPrompt;
  /** Up to where the room's events are shown. */
  readonly seen?: number;
  /** How the conversation's log is to be shown from now on. */
  readonly log?: LogState | undefined;
}

/** Who thinks in a turn: the agent itself, or a sub-agent that it has delegated to. */
export interface Frame {
  /** The names of the sub-agents, from the outermost: `planner/clerk`. Undefined is the agent itself. */
  readonly subAgent: string | undefined;
  readonly model: string;
  /** Names of the tools; undefined is all that the agent has. */
  readonly tools: readonly string[] | undefined;
  /** Names of those that it may delegate to; undefined is all that the agent may. */
  readonly delegates: readonly string[] | undefined;
  /** Number of the todo that its calls are linked to where they name none. */
  readonly todo: number | undefined;
  readonly exchange: Exchange;
  /** Its thoughts, calls and results so far. */
  readonly entries: Element[];
  /** What the ids of its calls begin with. */
  readonly callPrefix: string;
  /** Calls that were made so far: their ids rise. */
  calls: number;
  /** What step `n` shows it; `wakes` are what the turn has taken so far. */
  readonly look: (state: TurnState, n: number, wakes: readonly TakenWake[]) => Promise<Look>;
}

/** What is handed to a sub-agent. */
export interface Delegation {
  readonly name: string;
  /** The `functionCall` by which it is handed over, and its id. */
  readonly call: Element;
  readonly id: string;
  /** Number of the todo that it is done for. */
  readonly todo: number | undefined;
}

/** A turn at work: what it works with, and how far it has come. */
export interface TurnState {
  readonly mind: Mind;
  readonly agent: Agent;
  readonly turn: Turn;
  readonly journal: Journal;
  readonly signal: AbortSignal;
  /** Who thinks now. */
  frame: Frame;
  /** See `delegate.ts`. */
  readonly delegate: (state: TurnState, delegation: Delegation, wakes: readonly TakenWake[]) => Promise<ToolOutcome>;
  /** Whatever the model has been shown in this turn, as `may_read` names it. */
  sources: readonly RoomId[];
  /** Untrusted texts among that: user ids, and paths of files; some of them, where there are many. */
  taint: readonly string[];
  /** Wakes whose notes the agent was shown. */
  readonly noted: Set<number>;
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
}

/** Key of what step `n` of the turn sends. */
export const keyOfStep = ({ agent, turn }: TurnState, n: number): string => digest("turn", agent.userId, turn.id, n);

/** Id under which whoever thinks is shown its call number `number`, from 1. */
export const callId = ({ frame }: TurnState, number: number): string => `${frame.callPrefix}.${number}`;

export const addSources = (state: TurnState, sources: readonly RoomId[]): void => {
  state.sources = [...new Set([...state.sources, ...sources])];
};

export const addTaint = (state: TurnState, taint: readonly string[]): void => {
  const names = [...new Set([...state.taint, ...taint])];
  // Files first: of many people one can be named as well as another.
  state.taint = names.toSorted((a, b) => Number(a.startsWith("@")) - Number(b.startsWith("@"))).slice(0, taintMost);
};

/** Tells those whom a step wakes, and those who show thoughts, that it was written. */
export const announce = ({ mind, agent }: TurnState, wakes: readonly WakeDraft[] = []): void => {
  mind.onThought(agent.name);
  if (wakes.length > 0) mind.onWoken(wakes.map(({ agent: name, roomId }) => ({ agent: name, roomId })));
};
