import type { Json } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { CallUsage, Share } from "./budgets.ts";
import type { WakeDraft } from "./effects.ts";
import type { FilePlace } from "./files.ts";
import type { Memory } from "./interactions.ts";
import type { LogSummary, PreparedCut } from "./log-summary.ts";
import type { OperationRecord } from "./operation-record.ts";
import type { OutboxDraft } from "./outbox.ts";
import type { NewRender } from "./renders.ts";
import type { LeftOpen } from "./silences.ts";

export interface Step {
  readonly n: number;
  readonly name: string;
  /** `started`: begun, and not to be repeated; `asked`: waits for a person's decision, or for its turn to go on with it. */
  readonly state: "started" | "asked" | "done";
  readonly result: Json;
}

/** Tokens and money that the model call of a step consumed. */
interface StepUsage extends CallUsage {
  /** Length of what was sent, and of its beginning that was the same in the conversation's previous call. */
  readonly promptChars?: number;
  readonly prefixChars?: number;
  /** Share of each message in the prompt's tokens. */
  readonly shares?: readonly Share[];
  /** Key under which the reservation of the call is settled. */
  readonly reservation: string | undefined;
}

export interface StepCommit {
  readonly n: number;
  readonly name: string;
  readonly result: Json;
  /** Made from what was rendered: written only if everybody who hears it may read that; see `Unheard`. */
  readonly outbox?: readonly OutboxDraft[];
  /** Sent whoever hears it. */
  readonly notices?: readonly OutboxDraft[];
  /** Somebody who was told of the wall has let the outbox over it. */
  readonly crossesWall?: boolean;
  /** LMML elements for the ephemeris, in order. */
  readonly ephemeris?: readonly string[];
  /** Memories that the agent has of these elements, by their index. */
  readonly remembered?: readonly (Memory | undefined)[];
  /** Memories that the step keeps beside them. */
  readonly kept?: readonly Memory[] | undefined;
  /** They are a sub-agent's: shown to people, and not to the agent. */
  readonly subAgent?: string | undefined;
  readonly usage?: StepUsage | undefined;
  /** Render that the step was shown, if it is not kept yet. */
  readonly render?: NewRender | undefined;
  /** Rooms that were rendered for this step. */
  readonly sources?: readonly RoomId[];
  /** The humans for whom they were rendered. */
  readonly audience?: readonly UserId[] | undefined;
  /** Nothing that was rendered before is shown in the turn any more: `sources` are all there are. */
  readonly looksAnew?: boolean;
  /** Untrusted texts that were rendered for it: user ids, and paths of files. */
  readonly taint?: readonly string[];
  /** Up to where the room's events were rendered. */
  readonly seen?: number;
  /** State of the conversation's log from now on. */
  readonly log?: LogState | undefined;
  /** Other agents' conversations that go on from here: agents spend the budget of the chain that the first names. */
  readonly wakes?: readonly WakeDraft[] | undefined;
  /** Records of operations in the step: its own, and one that it replaces. */
  readonly operations?: readonly OperationRecord[];
  /** File in which the end of each of these operations is noted. */
  readonly logTo?: FilePlace | undefined;
  /** See `leaveOpen`; undefined where the agent follows nothing up. */
  readonly leftOpen?: LeftOpen | undefined;
  /** The turn ends with this step. */
  readonly ends?: boolean;
  /** The step is not done: it asks people, and the turn is parked until they have decided. */
  readonly asks?: boolean;
  /** Asked only if none of the messages that the turn works on has changed since; see `Seen`, `RequestChanged`. */
  readonly changes?: number | undefined;
}

/**
 * State of the log that a conversation is shown, so that the next render begins as the last one did. If it is lost,
 * only that is lost.
 */
export interface LogState {
  /** By room: events up to this place are not shown any more. */
  readonly from: Readonly<Record<string, number>>;
  /** Rooms of which something older than that is left out, and `ephemeris`. */
  readonly leftOut?: readonly string[];
  /** Entry of the ephemeris up to which results are shown in brief. */
  readonly brief?: number;
  /** Rises when it is cut: by one where that was prepared, by two where no summary was ready. */
  readonly cuts?: number;
  /** Of what is left out. */
  readonly summary?: LogSummary | undefined;
  /** Where it is cut next; written in the background, see `prepareCut`. */
  readonly prepared?: PreparedCut | undefined;
}

/** Names that are kept of what a turn was tainted by. */
export const taintMost = 20;

/** Another runner has taken the turn over, or it was stopped: whoever sees this must not go on. */
export class Fenced extends Error {
  override readonly name = "Fenced";
}

/** Nothing was written: somebody would hear it who may not read all that it was made from. */
export class Unheard extends Error {
  override readonly name = "Unheard";
}

/** Nothing was written: what the step asks for was asked of the agent in words that are not there any more. */
export class RequestChanged extends Error {
  override readonly name = "RequestChanged";
}

/** The rooms for which steps have something in the outbox. */
export const roomsSpokenIn = (steps: readonly StepCommit[]): RoomId[] => [
  ...new Set(draftsOf(steps).map(({ roomId }) => roomId)),
];

/** Everything that steps send. */
export const draftsOf = (steps: readonly StepCommit[]): OutboxDraft[] =>
  steps.flatMap(({ outbox = [], notices = [] }) => [...outbox, ...notices]);
