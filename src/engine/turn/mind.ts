import type { AgentName, Conversation, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import type { ModelChoice, ModelKind } from "../../domain/agents/models.ts";
import type { BudgetBook } from "../../domain/budget/book.ts";
import type { MeteredModel } from "../../domain/budget/metered-model.ts";
import type { Draft, DraftPlace } from "../../domain/speech/draft.ts";
import type { History } from "../../domain/tables/history.ts";
import type { MediaTable } from "../../domain/tables/media.ts";
import type { Queued } from "../../domain/tables/outbox.ts";
import type { Renders } from "../../domain/tables/renders.ts";
import type { Todos } from "../../domain/tables/todos.ts";
import type { Turns } from "../../domain/tables/turns.ts";
import type { AskServices } from "../operations/asking.ts";
import type { ToolServices } from "../operations/tool-context.ts";
import type { Toolbox } from "../operations/toolbox.ts";
import type { View } from "../sight/view.ts";
import type { CommandsUnderWay } from "./commands-under-way.ts";
import type { Compactor } from "./compactor.ts";
import type { LogSummaries } from "./log-summaries.ts";
import type { PrefixMeter } from "./prefix-meter.ts";

/** Everything that a turn works with. */
export interface Mind extends ToolServices, AskServices {
  readonly log: Log;
  readonly directory: AgentDirectory;
  readonly todos: Todos;
  readonly history: History;
  readonly media: MediaTable;
  readonly turns: Turns;
  readonly renders: Renders;
  readonly view: View;
  readonly toolbox: Toolbox;
  readonly underWay: CommandsUnderWay;
  readonly prefixes: PrefixMeter;
  readonly model: MeteredModel;
  readonly compactor: Compactor;
  readonly summaries: LogSummaries;
  /** Chooses the model with which an agent thinks; `see`: in a step that shows images; `read`: where a cheap one will do. */
  readonly choiceFor: (agent: Agent, kind?: ModelKind) => ModelChoice;
  readonly book: BudgetBook;
  /** Stores what this user of ours has missed in the room; a `RetryError` where the homeserver does not answer. */
  readonly readMissed: (userId: UserId, roomId: RoomId) => Promise<void>;
  /** Something waits to be sent into these rooms. */
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** These rows were queued just now. */
  readonly onQueued: (queued: Queued) => void;
  /** These conversations have something to work on. */
  readonly onWoken: (conversations: readonly Conversation[]) => void;
  /** Said in the control room, once for a key. */
  readonly tellOperators: (text: string, key: string) => void;
  /** A turn is not at work here any more: `left` is left to another process, or to the next start. */
  readonly onTurnEnded: (outcome: "done" | "parked" | "failed" | "stopped" | "left", milliseconds: number) => void;
  /** The agent has thought or done something: a step was written down. */
  readonly onThought: (agent: AgentName) => void;
  /** The agent has read its room up to this event; `answered` says whether its answer already tells so. */
  readonly onRead: (agent: Agent, roomId: RoomId, eventId: EventId, answered: () => boolean) => void;
  /** Lets people see an answer before it is whole. */
  readonly openDraft: (place: DraftPlace) => Draft;
  /** Shows people that the agent is at work; call the result when it is not any more. */
  readonly showWork: (agent: Agent, roomId: RoomId) => () => void;
}
