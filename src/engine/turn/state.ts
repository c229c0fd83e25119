import type { ShownImage } from "../../adapters/model/images.ts";
import { digest, type EventId, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { ModelChoice } from "../../domain/agents/models.ts";
import type { WakeDraft } from "../../domain/tables/effects.ts";
import { type LogState, taintMost } from "../../domain/tables/steps.ts";
import type { TakenWake, Turn } from "../../domain/tables/turns.ts";
import type { ToolOutcome } from "../operations/tool.ts";
import type { Exchange, StepPrompt } from "./exchange.ts";
import type { Journal } from "./journal.ts";
import type { Mind } from "./mind.ts";

/** Prompt of a step. */
interface Look {
  readonly prompt: StepPrompt;
  /** Up to where the room's events are shown. */
  readonly seen?: number;
  /** True if there are new events that found no room in it. */
  readonly othersWait?: boolean;
  /** The humans for whom it is rendered. */
  readonly audience?: readonly UserId[];
  /** State of the conversation's log from now on. */
  readonly log?: LogState | undefined;
}

/** Thinker of a turn: the agent itself, or a sub-agent that it has delegated to. */
export interface Frame {
  /** The names of the sub-agents, from the outermost: `planner/clerk`. Undefined is the agent itself. */
  readonly subAgent: string | undefined;
  /** The model that it thinks with. */
  readonly choice: ModelChoice;
  /** Names of the tools; undefined is all that the agent has. */
  readonly tools: readonly string[] | undefined;
  /** Names of those that it may delegate to; undefined is all that the agent may. */
  readonly delegates: readonly string[] | undefined;
  /** Number of the todo that its calls are linked to where they name none. */
  readonly todo: number | undefined;
  readonly exchange: Exchange;
  /** Its thoughts, calls and results so far. */
  readonly entries: Element[];
  /** Beginning of the ids of its calls. */
  readonly callPrefix: string;
  /** Numbers of its operations, by the ids of their calls. */
  readonly numbers: Map<string, number>;
  /** Calls that were made so far: their ids rise. */
  calls: number;
  /** Makes the prompt of step `n`; `wakes` are those that the turn has taken so far. */
  readonly look: (state: TurnState, n: number, wakes: readonly TakenWake[]) => Promise<Look>;
}

/** Errand that is handed to a sub-agent. */
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
  /** Frame of the thinker now. */
  frame: Frame;
  /** See `delegate.ts`. */
  readonly delegate: (state: TurnState, delegation: Delegation, wakes: readonly TakenWake[]) => Promise<ToolOutcome>;
  /** Sources of everything that the model has been shown in this turn, as `may_read` names them. */
  sources: readonly RoomId[];
  /** The humans who were there at every look; null before the first. */
  audience: readonly UserId[] | null;
  /** Number of changes to the messages that the turn works on, when the agent looked last; see `Seen`. */
  changes: number | undefined;
  /** Untrusted texts among that: user ids, and paths of files; some of them, where there are many. */
  taint: readonly string[];
  /** Wakes whose notes the agent was shown. */
  readonly noted: Set<number>;
  /** People in the conversation's room have heard the agent in this turn. */
  spoke: boolean;
  /** New events that the agent was shown in this turn. */
  readonly shownNews: Set<EventId>;
  /** Those of them that it has dealt with while others waited: they give way to the others. */
  readonly dealtWith: Set<EventId>;
  /** People have been told up to where the agent has read. */
  hasRead: boolean;
  /** Events whose files were waited for. */
  readonly awaited: Set<EventId>;
  /** Images that were shown, by the event that they came with; undefined where one cannot be shown. */
  readonly images: Map<EventId, ShownImage | undefined>;
  /** Images that its own calls have given it. */
  readonly givenImages: ShownImage[];
  /** The agent was told that nobody has heard it. */
  wasReminded: boolean;
  /** True if it was told so because its model had answered nothing at all. */
  wasWordless: boolean;
}

/**
 * Key of something that the turn sends. Contains a random value: the homeserver answers a key that it has seen with the
 * event of that time, and ids come again where an older copy of the database goes on. Turns of old versions have none.
 */
export const keyInTurn = (name: string, agent: Agent, { id, salt }: Turn, ...parts: (string | number)[]): string =>
  digest(name, agent.userId, id, ...(salt === "" ? [] : [salt]), ...parts);

/** Key of what step `n` of the turn sends. */
export const keyOfStep = ({ agent, turn }: TurnState, n: number): string => keyInTurn("turn", agent, turn, n);

/** Id under which whoever thinks is shown its call number `number`, from 1. */
export const callId = ({ frame }: TurnState, number: number): string => `${frame.callPrefix}.${number}`;

export const addSources = (state: TurnState, sources: readonly RoomId[]): void => {
  state.sources = [...new Set([...state.sources, ...sources])];
};

export const addAudience = (state: TurnState, audience: readonly UserId[]): void => {
  state.audience = state.audience?.filter((person) => audience.includes(person)) ?? audience;
};

export const addTaint = (state: TurnState, taint: readonly string[]): void => {
  const names = [...new Set([...state.taint, ...taint])];
  // Files first: of many people one can be named as well as another.
  state.taint = names.toSorted((a, b) => Number(a.startsWith("@")) - Number(b.startsWith("@"))).slice(0, taintMost);
};

/** Takes note that the agent has done all that it wants to do about the new events that it was shown. */
export const dealWithNews = ({ dealtWith, shownNews }: TurnState): void => {
  for (const eventId of shownNews) dealtWith.add(eventId);
};

/** Tells those whom a step wakes, and those who show thoughts, that it was written. */
export const announce = ({ mind, agent }: TurnState, wakes: readonly WakeDraft[] = []): void => {
  mind.onThought(agent.name);
  if (wakes.length > 0) mind.onWoken(wakes.map(({ agent: name, roomId }) => ({ agent: name, roomId })));
};
