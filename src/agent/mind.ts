import type { Interpreter } from "../compute/interpreter.ts";
import type { Chains } from "../database/chains.ts";
import type { History } from "../database/history.ts";
import type { Knowledge } from "../database/knowledge.ts";
import type { MediaTable } from "../database/media.ts";
import type { Operations } from "../database/operations.ts";
import type { Queued } from "../database/outbox.ts";
import type { Renders } from "../database/renders.ts";
import type { Rooms } from "../database/rooms.ts";
import type { Conversation } from "../database/routing.ts";
import type { Todos } from "../database/todos.ts";
import type { Turns } from "../database/turns.ts";
import type { Uploads } from "../database/uploads.ts";
import type { Clock } from "../lib/clock.ts";
import type { AgentName, EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import type { FileSystemParts } from "../vfs/file-system.ts";
import type { Agent, AgentDirectory } from "./agent.ts";
import type { BudgetBook } from "./budget.ts";
import type { CommandsUnderWay } from "./commands-under-way.ts";
import type { Draft, DraftPlace } from "./draft.ts";
import type { MeteredModel } from "./metered-model.ts";
import type { PrefixMeter } from "./prefix.ts";
import type { Rights } from "./rights.ts";
import type { Schedules } from "./schedules.ts";
import type { Sensor } from "./sensor.ts";
import type { SubAgents } from "./subagent.ts";
import type { Submodels } from "./submodel.ts";
import type { Toolbox } from "./toolbox.ts";
import type { View } from "./view.ts";
import type { WindowParts } from "./window-desk.ts";

/** What every turn works with. */
export interface Mind {
  /** The bridge's own user. */
  readonly botUserId: UserId;
  readonly clock: Clock;
  readonly log: Log;
  readonly directory: AgentDirectory;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly history: History;
  readonly files: FileSystemParts;
  readonly knowledge: Knowledge;
  readonly todos: Todos;
  readonly windows: WindowParts;
  readonly media: MediaTable;
  readonly uploads: Uploads;
  readonly chains: Chains;
  readonly turns: Turns;
  readonly operations: Operations;
  readonly renders: Renders;
  readonly view: View;
  readonly toolbox: Toolbox;
  readonly underWay: CommandsUnderWay;
  readonly subAgents: SubAgents;
  readonly prefixes: PrefixMeter;
  readonly model: MeteredModel;
  readonly submodels: Submodels;
  readonly interpreter: Interpreter;
  readonly sensors: readonly Sensor[];
  readonly schedules: Schedules;
  readonly book: BudgetBook;
  /** Something waits to be sent into these rooms. */
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
  /** The same, of rows that were queued just now. */
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
