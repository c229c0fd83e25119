import type { History } from "../database/history.ts";
import type { Rooms } from "../database/rooms.ts";
import type { RoomId } from "../lib/ids.ts";
import type { Agent } from "./agent.ts";
import { includesLevel, type Level } from "./permissions.ts";
import { type Mode, modes } from "./settings.ts";
import type { AnyTool, OperationKind, ToolContext } from "./tool.ts";

/** A call that wants to be carried out. */
export interface Call {
  readonly agent: Agent;
  /** The conversation it comes from. */
  readonly roomId: RoomId;
  readonly tool: AnyTool;
  readonly input: Record<string, unknown>;
  readonly kind: OperationKind;
  /** What those may do for whom the agent acts: the least of them. */
  readonly level: Level;
  /** A person's own command is asked for already: the mode, which guards against the agent's ideas, does not apply. */
  readonly by: "model" | "person";
  /** Rooms whose content the caller has seen. */
  readonly sources: readonly RoomId[];
  readonly files: ToolContext["files"];
}

/** What happens to a call: it is carried out, put to somebody who may decide, or refused. */
export type Verdict =
  | { readonly decision: "run" }
  | { readonly decision: "ask"; readonly reason: string }
  | { readonly decision: "refuse"; readonly reason: string };

const run: Verdict = { decision: "run" };
const ask = (reason: string): Verdict => ({ decision: "ask", reason });
const refuse = (reason: string): Verdict => ({ decision: "refuse", reason });

const levelFor = (kind: OperationKind): Level => (kind === "read" ? "use" : "operate");

const allows = (mode: Mode, kind: OperationKind): boolean => modes.indexOf(kind) <= modes.indexOf(mode);

/** Whether something of this kind that is not the agent's `own` would be carried out here. */
export const permits = (kind: OperationKind, { agent, by, level }: Pick<Call, "agent" | "by" | "level">): boolean =>
  includesLevel(level, levelFor(kind)) && (by === "person" || allows(agent.settings.mode, kind));

/**
 * The one place where it is decided whether an operation is carried out: mode ∩ rights of those it is done for ∩
 * walls. What is refused tells the caller why.
 */
export async function gate(call: Call, database: { rooms: Rooms; history: History }): Promise<Verdict> {
  const { agent, kind, level, tool } = call;
  const target = tool.sendsTo?.(call.input, call);
  const ownAffair = typeof tool.own === "function" ? tool.own(call.input, call) : tool.own === true;
  const own = ownAffair || (target !== undefined && target === call.roomId);
  if (target !== undefined && target !== call.roomId) {
    const audience = await database.rooms.humans(target);
    if (!(await database.history.mayReadAll(audience, call.sources, agent.owner))) {
      return refuse("the people in that room may not read everything that was shown to you in this turn");
    }
  }
  const needed: Level = own && call.by === "model" ? "chat" : levelFor(kind);
  if (!includesLevel(level, needed)) {
    return refuse(`it needs the right to ${needed}, and those you act for have: ${level}`);
  }
  if (!own && call.by === "model" && !allows(agent.settings.mode, kind)) {
    return ask(`it would ${kind} something, and your mode is ${agent.settings.mode}`);
  }
  return run;
}
