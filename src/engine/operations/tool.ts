import type { z } from "zod";
import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import type { Interpreter } from "../../adapters/sandbox/interpreter.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import type { ToolSet } from "../../domain/agents/settings.ts";
import type { Submodel } from "../../domain/budget/submodel.ts";
import type { WindowDesk } from "../../domain/desk/windows.ts";
import type { FileSystem } from "../../domain/files/file-system.ts";
import type { Schedules } from "../../domain/plans/schedules.ts";
import type { Level } from "../../domain/rights/permissions.ts";
import type { WakeDraft } from "../../domain/tables/effects.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { Knowledge } from "../../domain/tables/knowledge.ts";
import type { Operations } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { Todos } from "../../domain/tables/todos.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";
import type { Topic } from "./topics.ts";

export const operationKinds = ["read", "create", "update", "delete"] as const;
export type OperationKind = (typeof operationKinds)[number];

/** Services that every tool is handed as they are; `wireMind` makes them. */
export interface SharedServices {
  readonly agents: AgentDirectory;
  readonly events: Pick<Events, "find" | "numbered">;
  readonly interpreter: Interpreter;
  readonly knowledge: Knowledge;
  readonly operations: Pick<Operations, "shown">;
  readonly rooms: Rooms;
  readonly schedules: Pick<Schedules, "find" | "add" | "list" | "remove">;
  readonly todos: Todos;
  /** Files that rows of the outbox of kind `media` carry, under the row's key. */
  readonly uploads: Pick<Uploads, "keep">;
}

/** Services that a tool may use; they come as one argument, and nothing else is reached for. */
export interface ToolContext extends SharedServices {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  /** The thread in which the conversation stands, if it stands in one. */
  readonly thread: ThreadPlace | undefined;
  /** Equal for one call, however often it is run: keys of what it sends are made from it. */
  readonly key: string;
  /** Root of the chain of turns to which this belongs, as `WakeDraft` has it. */
  readonly chain: string;
  readonly by: "model" | "person";
  /** Those for whom the agent acts; for a command, the person who gave it. */
  readonly requesters: readonly UserId[];
  /** The least of what they may do. */
  readonly level: Level;
  /** The one of them who may do the least: in whose name something goes on by itself. */
  readonly onBehalfOf: UserId;
  /** Sources that the caller has been shown, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts that the caller has read: user ids, and paths of files. */
  readonly taint: readonly string[];
  readonly now: Date;
  /** Answers questions about texts that are too long to be read by the agent itself. */
  readonly submodel: Submodel;
  /** Files as those for whom it is done may use them. What is read of them is counted to the outcome's sources and taint. */
  readonly files: FileSystem;
  /** Files as the people of another room may see them: only what they may read. */
  readonly filesIn: (roomId: RoomId) => FileSystem;
  /** Number of the todo that it is done for. */
  readonly todo?: number | undefined;
  /**
   * Has a sub-agent do what the call says: within the turn, or for a person's command in one that it begins. Throws a
   * `UserError` where there is none of this name.
   */
  readonly delegate: (work: { readonly subAgent: string }) => Promise<ToolOutcome>;
  /** The wake by which another agent is told something. Throws a UserError where it cannot be. */
  readonly letter: (to: Agent, text: string) => Promise<WakeDraft>;
  /** Windows that are open on the desk of the conversation. */
  readonly windows: WindowDesk;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** Facts that tell where a call reaches. */
export interface PlaceContext extends Pick<ToolContext, "agent" | "agents" | "files" | "roomId"> {
  readonly rooms: Pick<Rooms, "humans">;
}

export interface ToolOutcome {
  /** Result for the caller; for people, Markdown. */
  readonly result: Element | string;
  /** The result is text from elsewhere: people see its characters as they are. */
  readonly verbatim?: boolean;
  /** Sent if, and only if, the operation is recorded as done. */
  readonly outbox?: readonly OutboxDraft[];
  /** Agents that go on from here: stored if, and only if, the operation is recorded as done. */
  readonly wakes?: readonly WakeDraft[];
  /** The room in which people hear of it. */
  readonly speaksIn?: RoomId;
  /** Sources that the result shows the caller, as `may_read` names them. */
  readonly sources?: readonly RoomId[];
  /** Untrusted texts in it, or from which it was made. */
  readonly taint?: readonly string[];
  /** The turn is over after this step, without another model call. */
  readonly endsTurn?: boolean;
}

/**
 * A capability. One definition gives the model's JSON Schema, the `!command` with its usage line, and the validation
 * of both; a model's call and a person's command pass the same gate.
 */
export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly name: string;
  readonly set: ToolSet;
  /** The command's words without its prefix, one or two; positional arguments in the order of the input, the last takes the rest. */
  readonly command?: string;
  /** Other words for it; the tool's name is one by itself. */
  readonly aliases?: readonly string[];
  /** Examples of what people may write behind the command. */
  readonly examples?: readonly string[];
  /** Optional fields that a command gives by position as well, after the required ones. */
  readonly positional?: readonly string[];
  /** Quotes around the last value, a path or a pattern of paths, are not part of it. */
  readonly pathLast?: boolean;
  /** Speaks to the model. */
  readonly description: string;
  /** Speaks to people in its place, where the two differ. */
  readonly help?: string;
  /**
   * A call in the words in which a person would ask for it, such as `Delete {path}`, with fields of the input; there must be
   * a value for each. `{field:words}` says by these words that a field is true.
   */
  readonly wording?: string | ((input: z.output<z.ZodObject<Shape>>, kind: OperationKind) => string);
  /** The part of `!help` in which the command stands. */
  readonly topic?: Topic;
  /** Where it depends on the input, `run` is told which it was. */
  readonly kind:
    | OperationKind
    | ((input: z.output<z.ZodObject<Shape>>, context: ToolContext) => Promise<OperationKind>);
  /** Touches only the agent's own state, with this input if it depends on that: runs in every mode. */
  readonly own?: boolean | ((input: z.output<z.ZodObject<Shape>>, context: Pick<ToolContext, "files">) => boolean);
  /**
   * Whose people will see what the call sends: a room's, or one user ('@…'). In the conversation's own room the call
   * counts as `own`.
   */
  readonly sendsTo?: (
    input: z.output<z.ZodObject<Shape>>,
    context: PlaceContext,
  ) => RoomId | undefined | Promise<RoomId | undefined>;
  /**
   * It tells or changes something beyond the people of this conversation, so that it asks where untrusted text was
   * read. By default what updates, deletes, or sends to another place does.
   */
  readonly reachesOutside?:
    | boolean
    | ((input: z.output<z.ZodObject<Shape>>, context: PlaceContext) => boolean | Promise<boolean>);
  /**
   * The file, folder or pattern whose content it takes elsewhere: an approval counts for that content alone, and another
   * asks again.
   */
  readonly carries?: (input: z.output<z.ZodObject<Shape>>) => string;
  /** Fields of the input that are paths, or patterns of them: one without a share is in the room's files. */
  readonly paths?: readonly string[];
  /** May be run again when its outcome is unknown. Where not, the outcome is reported as unknown. */
  readonly repeatable: boolean;
  /**
   * Its calls may run at once with others of their step; by default those of kind `read`. Not where they change what the
   * next call would find.
   */
  readonly beside?: boolean | ((input: z.output<z.ZodObject<Shape>>) => boolean);
  /** `run` changes nothing and waits for nothing but the database: all that happens is in its outcome. */
  readonly immediate?: boolean;
  /** Every field is described: the model and people read it. */
  readonly input: z.ZodObject<Shape>;
  /** Throws a `UserError` for what the caller can mend. */
  readonly run: (
    input: z.output<z.ZodObject<Shape>>,
    context: ToolContext,
    kind: OperationKind,
  ) => Promise<ToolOutcome>;
}

/** A tool whose input's type is forgotten, as it stands in a toolbox: the input is validated before it is run. */
export type AnyTool = Tool;

export const defineTool = <Shape extends z.ZodRawShape>(tool: Tool<Shape>): AnyTool => tool as unknown as AnyTool;
