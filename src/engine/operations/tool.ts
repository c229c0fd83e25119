import type { z } from "zod";
import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import type { Interpreter } from "../../adapters/sandbox/interpreter.ts";
import type { AgentName, EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import type { ToolSet } from "../../domain/agents/settings.ts";
import type { Submodel } from "../../domain/budget/submodel.ts";
import type { WebPages } from "../../domain/desk/page-source.ts";
import type { WindowDesk } from "../../domain/desk/windows.ts";
import type { FileSystem } from "../../domain/files/file-system.ts";
import type { KnowledgeBase } from "../../domain/memory/knowledge-base.ts";
import type { MemoryRecall } from "../../domain/memory/recall.ts";
import type { Schedules } from "../../domain/plans/schedules.ts";
import type { Level } from "../../domain/rights/permissions.ts";
import type { Browsers } from "../../domain/sandboxes/browsers.ts";
import type { CommandJournal } from "../../domain/sandboxes/command-journal.ts";
import type { HostPorts } from "../../domain/sandboxes/host-ports.ts";
import type { SandboxProvider } from "../../domain/sandboxes/sandbox.ts";
import type { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import type { Servers } from "../../domain/servers/servers.ts";
import type { WakeDraft } from "../../domain/tables/effects.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { Memory } from "../../domain/tables/interactions.ts";
import type { Operations } from "../../domain/tables/operations.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { Todos } from "../../domain/tables/todos.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";
import type { WebAddresses } from "../../domain/tables/web-addresses.ts";
import type { Topic } from "./topics.ts";

export const operationKinds = ["read", "create", "update", "delete"] as const;
export type OperationKind = (typeof operationKinds)[number];

/** Services that every tool is handed as they are; `wireMind` makes them. */
export interface SharedServices {
  readonly addresses: Pick<WebAddresses, "isKnown">;
  readonly agents: AgentDirectory;
  readonly browsers: Pick<Browsers, "shoot">;
  readonly events: Pick<Events, "find" | "findNumbered">;
  readonly hostPorts: Pick<HostPorts, "open">;
  readonly interpreter: Interpreter;
  readonly knowledge: KnowledgeBase;
  readonly memory: Pick<MemoryRecall, "recall">;
  /** The agent's LOG.md of a conversation has so many bytes now. */
  readonly onLogGrown: (
    agent: Agent,
    place: { readonly roomId: RoomId; readonly requesters: readonly UserId[] },
    bytes: number,
  ) => void;
  /** Shows those who may see what an agent thinks that a call in this room goes on. */
  readonly onProgress: (agent: AgentName, roomId: RoomId, text: string) => void;
  readonly operations: Pick<Operations, "shown">;
  /** undefined: pages of the web cannot be opened. */
  readonly pages: WebPages | undefined;
  readonly rooms: Rooms;
  readonly sandboxCommands: Pick<CommandJournal, "run">;
  readonly sandboxes: SandboxProvider & Pick<Sandboxes, "reset" | "settings">;
  readonly schedules: Pick<Schedules, "find" | "add" | "list" | "remove">;
  readonly servers: Pick<Servers, "call">;
  readonly todos: Todos;
  /** Files that rows of the outbox of kind `media` carry, under the row's key. */
  readonly uploads: Pick<Uploads, "keep">;
}

/** Services that a tool may use, as one argument; it uses nothing else. */
export interface ToolContext extends SharedServices {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  /** The thread in which the conversation stands, if it stands in one. */
  readonly thread: ThreadPlace | undefined;
  /** Key of the call, the same at each run: the keys of all that it sends are made from it. */
  readonly key: string;
  /** Root of the chain of turns to which this belongs, as `WakeDraft` has it. */
  readonly chain: string;
  readonly by: "model" | "person";
  /** People for whom the agent acts; for a command, the person who gave it. */
  readonly requesters: readonly UserId[];
  /** See `Origin`. */
  readonly causes?: readonly EventId[];
  /** Lowest level among them. */
  readonly level: Level;
  /** Person among them with the lowest level: for them work goes on that the call leaves behind, such as a schedule. */
  readonly onBehalfOf: UserId;
  /** Sources that the caller has been shown, as `may_read` names them. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts that the caller has read: user ids, and paths of files. */
  readonly taint: readonly string[];
  readonly now: Date;
  /** Answers questions about texts that are too long to be read by the agent itself. */
  readonly submodel: Submodel;
  /** Files as the requesters may use them. Every file that is read adds to the outcome's sources and taint. */
  readonly files: FileSystem;
  /** Files as the people of another room may see them: only what they may read. */
  readonly filesIn: (roomId: RoomId) => FileSystem;
  /** Number of the todo for which it is done. */
  readonly todo?: number | undefined;
  /**
   * Gives the request to a sub-agent: within the turn, or, for a person's command, in a turn that it begins. Throws a
   * `UserError` if there is none of this name.
   */
  readonly delegate: (work: { readonly subAgent: string }) => Promise<ToolOutcome>;
  /** Makes the wake that tells another agent something. Throws a `UserError` if that is not possible. */
  readonly letter: (to: Agent, text: string) => Promise<WakeDraft>;
  /** Windows that are open on the desk of the conversation. */
  readonly windows: WindowDesk;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /** Shows those who wait for a person's command what there is of its result, as Markdown, and made from which sources. */
  readonly showProgress?: ((text: () => string, sources: readonly RoomId[]) => void) | undefined;
}

/** Facts that tell where a call reaches. */
export interface PlaceContext extends Pick<ToolContext, "addresses" | "agent" | "agents" | "files" | "roomId"> {
  readonly rooms: Pick<Rooms, "humans">;
}

export interface ToolOutcome {
  /** Result for the caller; for people, Markdown. */
  readonly result: Element | string;
  /** True if the result is text from elsewhere: people see it as it is, not as Markdown. */
  readonly isVerbatim?: boolean;
  /** Rows that are sent if, and only if, the operation is recorded as done. */
  readonly outbox?: readonly OutboxDraft[];
  /** Wakes of other agents, stored if, and only if, the operation is recorded as done. */
  readonly wakes?: readonly WakeDraft[];
  /** Memories that are kept if, and only if, the operation is recorded as done. */
  readonly kept?: readonly Memory[];
  /** Images that the caller sees with its next step, if its model sees. After a restart it does not see them again. */
  readonly images?: readonly { readonly label: string; readonly bytes: Buffer }[];
  /** Room in which people see it. */
  readonly speaksIn?: RoomId;
  /** Sources that the result shows the caller, as `may_read` names them. */
  readonly sources?: readonly RoomId[];
  /** Untrusted texts in it, or from which it was made. */
  readonly taint?: readonly string[];
  /** True if the turn ends after this step, without another model call. */
  readonly endsTurn?: boolean;
  /** True if it is not known what was done: the operation is recorded so, and is not repeated. */
  readonly isUnknown?: boolean;
}

/**
 * A capability. One definition gives the model's JSON Schema, the `!command` with its usage line, and the validation
 * of both; a model's call and a person's command pass the same gate.
 */
export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  readonly name: string;
  /** `mcp`: it is a tool of a server, which an agent has by its settings. */
  readonly set: ToolSet | "mcp";
  /** Left out for agents that have this set: a tool of it does the same. */
  readonly isSpareFor?: ToolSet;
  /** The command's words without its prefix, one or two; positional arguments in the order of the input, the last takes the rest. */
  readonly command?: string;
  /** Other words for it; the tool's name is one by itself. */
  readonly aliases?: readonly string[];
  /** Examples of what people may write behind the command. */
  readonly examples?: readonly string[];
  /** Optional fields that a command gives by position as well, after the required ones. */
  readonly positional?: readonly string[];
  /** Quotes around the last value, a path or a pattern of paths, are not part of it. */
  readonly isPathLast?: boolean;
  /** A command's named values may stand behind its text as well, and quotes around all of that are not part of it. */
  readonly hasNamedBehind?: boolean;
  /** The last value of a command is code: of one that is a code block of Markdown, it is what stands in it. */
  readonly isCodeLast?: boolean;
  /** Explains the tool to the model. */
  readonly description: string;
  /** Explains the command to people, if they need other words than the model. */
  readonly help?: string;
  /**
   * A call in the words in which a person would ask for it, such as `Delete {path}`, with fields of the input; there must be
   * a value for each. `{field:words}` says by these words that a field is true.
   */
  readonly wording?: string | ((input: z.output<z.ZodObject<Shape>>, kind: OperationKind) => string);
  /** The part of `!help` in which the command stands. */
  readonly topic?: Topic;
  /** Kind of the operation. Where it depends on the input, `run` is told which kind it was. */
  readonly kind:
    | OperationKind
    | ((input: z.output<z.ZodObject<Shape>>, context: ToolContext) => Promise<OperationKind>);
  /** Throws a `UserError` for a model's call that would fail after an approval, too: nobody is asked. */
  readonly check?: (
    input: z.output<z.ZodObject<Shape>>,
    context: Pick<ToolContext, "files" | "filesIn" | "level" | "roomId">,
  ) => Promise<void>;
  /** Touches only the agent's own state, with this input if it depends on that: runs in every mode. */
  readonly isOwn?: boolean | ((input: z.output<z.ZodObject<Shape>>, context: Pick<ToolContext, "files">) => boolean);
  /**
   * Room, or user ('@…'), whose people will see the text that the call sends. In the conversation's own room the call
   * counts as `isOwn`.
   */
  readonly sendsTo?: (
    input: z.output<z.ZodObject<Shape>>,
    context: PlaceContext,
  ) => RoomId | undefined | Promise<RoomId | undefined>;
  /**
   * True if it tells or changes something beyond the people of this conversation, so that it asks where untrusted text was
   * read. Default: true for a call that updates, deletes, or sends to another place.
   */
  readonly reachesOutside?:
    | boolean
    | ((input: z.output<z.ZodObject<Shape>>, context: PlaceContext) => boolean | Promise<boolean>);
  /**
   * File, folder or pattern whose content it takes elsewhere. An approval counts for that content alone: if it changes,
   * people are asked again.
   */
  readonly carries?: (input: z.output<z.ZodObject<Shape>>) => string | undefined;
  /** Fields of the input that are paths, or patterns of them: one without a share is in the room's files. */
  readonly paths?: readonly string[];
  /** Where those without a share are instead: in the conversation's sandbox, as commands there write them. */
  readonly pathsIn?: "sandbox";
  /** True if it may run again when its outcome is unknown; otherwise the agent is told that it is unknown. */
  readonly isRepeatable: boolean;
  /**
   * True if `run` goes on with what it has begun under the same key: after a death of the process, and where another takes
   * over. Nobody is asked again then. Only for a tool that is not repeatable, and sends nothing.
   */
  readonly mayResume?: boolean;
  /**
   * True if a call may run side by side with others of its step. Default: true for kind `read`. Must be false if it changes
   * the result of the next call.
   */
  readonly runsBeside?: boolean | ((input: z.output<z.ZodObject<Shape>>) => boolean);
  /** False if the bridge does not note a model's calls in LOG.md: talk, and tools that write working files. Default: true. */
  readonly isLogged?: boolean;
  /** True if `run` only reads the database: its outcome holds all changes. */
  readonly isImmediate?: boolean;
  /** Input, with a description of every field for the model and for people. */
  readonly input: z.ZodObject<Shape>;
  /** JSON Schema of the input as models are told it, where somebody else has written it. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Name of the definition, where another may take its place. */
  readonly revision?: string;
  /** Runs the call. Throws a `UserError` for a mistake that the caller can mend. */
  readonly run: (
    input: z.output<z.ZodObject<Shape>>,
    context: ToolContext,
    kind: OperationKind,
  ) => Promise<ToolOutcome>;
}

/** A tool whose input's type is forgotten, as it stands in a toolbox: the input is validated before it is run. */
export type AnyTool = Tool;

export const defineTool = <Shape extends z.ZodRawShape>(tool: Tool<Shape>): AnyTool => tool as unknown as AnyTool;
