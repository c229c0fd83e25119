import { z } from "zod";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { Message } from "../../adapters/matrix/message.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Embeddings } from "../../domain/memory/embeddings.ts";
import type { Forgetting } from "../../domain/memory/forget.ts";
import type { MemoryTransfer } from "../../domain/memory/transfer.ts";
import type { Level } from "../../domain/rights/permissions.ts";
import type { CommandJournal } from "../../domain/sandboxes/command-journal.ts";
import type { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import type { Servers } from "../../domain/servers/servers.ts";
import type { Progress } from "../../domain/speech/progress.ts";
import type { Utterance } from "../../domain/speech/utter.ts";
import type { Audit } from "../../domain/tables/audit.ts";
import type { DeviceListing } from "../../domain/tables/crypto-machines.ts";
import type { Effects, WakeDraft } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Overview } from "../../domain/tables/overview.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { SilenceTable } from "../../domain/tables/silences.ts";
import type { Approvals } from "../operations/approvals.ts";
import type { Commandable } from "../operations/command-line.ts";
import type { AnyTool } from "../operations/tool.ts";
import type { Topic } from "../operations/topics.ts";
import type { Mind } from "../turn/mind.ts";
import type { TurnRunner } from "../turn/runner.ts";
import type { AgentLifecycle } from "./lifecycle.ts";

/** Services that commands work with. */
export interface CommandServices extends Mind {
  readonly prefix: string;
  readonly serverName: string;
  readonly client: MatrixClient;
  readonly events: Pick<Events, "find" | "isFollowed">;
  readonly forgetting: Forgetting;
  readonly transfer: MemoryTransfer;
  readonly runner: TurnRunner;
  readonly audit: Audit;
  readonly approvals: Approvals;
  readonly lifecycle: AgentLifecycle;
  /**
   * Reads the configuration again, and has every other process read its own; `key` is the command's. Returns what is
   * different now, a line each. Throws a `UserError` if it is refused.
   */
  readonly reload: (key: string) => Promise<readonly string[]>;
  /** Lists what works and what does not, a line each. */
  readonly check: () => Promise<readonly string[]>;
  /** Reads what all agents are doing now, and what waits to be done. */
  readonly overview: () => Promise<Overview>;
  readonly devices: AgentDevices;
  readonly silences: SilenceTable;
  readonly embeddings: Pick<Embeddings, "state">;
  readonly sandboxes: Sandboxes;
  readonly sandboxCommands: CommandJournal;
  readonly servers: Servers;
  /** Begins to show a command's result while it grows. */
  readonly openProgress: (place: Omit<Utterance, "text">) => Progress;
  /** Begins a sweep of all agents, in every process. */
  readonly sweep: () => void;
}

/** Devices with which agents read and write in encrypted rooms. */
export interface AgentDevices {
  readonly find: (userId: UserId) => Promise<DeviceListing | undefined>;
  readonly fingerprint: (userId: UserId) => Promise<string>;
  /** Gives the agent another device. */
  readonly renew: (userId: UserId) => Promise<void>;
}

/** A person's command, as it came. */
export interface CommandContext extends CommandServices {
  readonly event: StoredEvent;
  readonly message: Message;
  readonly room: RoomContext;
  /** Level of the person. */
  readonly level: Level;
  /** Agents that are meant: the one that was named, or all that are joined here. */
  readonly agents: readonly Agent[];
  /** Shows what there is of the answer while it grows; undefined where nobody can say anything. */
  readonly progress: Progress | undefined;
  /** All commands there are, wherever they may be given. */
  readonly commands: readonly AnyCommand[];
}

export interface Answer {
  /** Markdown; empty when the outbox says it all. */
  readonly text: string;
  /** Untrusted texts in it: user ids, and paths of files. */
  readonly taint?: readonly string[];
  readonly outbox?: readonly OutboxDraft[];
  /** Agents that go on from here. */
  readonly wakes?: readonly WakeDraft[];
  /** Operation that was carried out, where the command is a tool's. */
  readonly operation?: Effects["operation"];
}

/**
 * - `agent`: in a room with agents; meant is exactly one of them
 * - `room`: in a room with agents, for all that are meant
 * - `control`: in the control room
 * - `anywhere`: in all of these
 */
type Place = "agent" | "room" | "control" | "anywhere";

/**
 * A person's command that is no tool. One definition gives its usage line, its validation and its line in `!help`. A
 * death of the process may make it run twice for one event: what it changes is keyed by the event's id.
 */
export interface Command<Shape extends z.ZodRawShape = z.ZodRawShape> extends Commandable {
  /** One word, or two where the first is a family's: `agent create`. */
  readonly command: string;
  readonly description: string;
  readonly where: Place;
  /** Level that the command needs; a person without it is told so, and nothing is done. */
  readonly level: Level;
  readonly input: z.ZodObject<Shape>;
  /** Throws a `UserError` for what the person can mend. */
  readonly run: (input: z.output<z.ZodObject<Shape>>, context: CommandContext) => Promise<Answer | string>;
}

/** A command whose input's type is forgotten: the input is validated before it is run. */
export type AnyCommand = Command;

type AgentCommand<Shape extends z.ZodRawShape> = Omit<Command<Shape>, "where" | "run"> & {
  readonly run: (
    input: z.output<z.ZodObject<Shape>>,
    context: CommandContext & { readonly agent: Agent },
  ) => Promise<Answer | string>;
};

export const noInput = z.object({});

export const defineCommand = <Shape extends z.ZodRawShape>(command: Command<Shape>): AnyCommand =>
  command as unknown as AnyCommand;

/** A command for one agent. */
export const defineAgentCommand = <Shape extends z.ZodRawShape>(command: AgentCommand<Shape>): AnyCommand =>
  defineCommand<Shape>({
    ...command,
    where: "agent",
    run: (input, context) => {
      const [agent] = context.agents;
      if (!agent) throw new Error(`${command.command} was run without an agent`);
      return command.run(input, { ...context, agent });
    },
  });

/** Topic of a form that names none: in the control room the bridge, elsewhere the basics. */
export const topicOf = (form: AnyCommand | AnyTool): Topic =>
  form.topic ?? ("where" in form && form.where === "control" ? "bridge" : "basics");
