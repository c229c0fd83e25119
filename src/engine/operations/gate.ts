import type { RoomId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { type Mode, modes } from "../../domain/agents/settings.ts";
import { includesLevel, type Level } from "../../domain/rights/permissions.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import type { AnyTool, OperationKind, PlaceContext, ToolContext } from "./tool.ts";

/** A call that wants to be carried out. */
export interface Call
  extends Pick<
    ToolContext,
    "addresses" | "agent" | "agents" | "by" | "files" | "level" | "requesters" | "roomId" | "sources" | "taint"
  > {
  readonly rooms: Pick<Rooms, "humans" | "passage">;
  readonly tool: AnyTool;
  readonly input: Record<string, unknown>;
  readonly kind: OperationKind;
}

/** People in a place may not read all that a call would carry to them. */
interface Wall {
  /** A room, a user ('@…'), or '' for the home of the agent. */
  readonly place: RoomId;
  readonly text: string;
}

/** A call has to be put to somebody who may decide. */
export interface AskVerdict {
  readonly decision: "ask";
  readonly reason: string;
  /** True if the requesters have no right to it: the person who says yes lends theirs. */
  readonly lacksRights: boolean;
  /** Wall that it would go over: the reason tells of it. */
  readonly wall?: Wall;
}

/** Answer of the gate: the call is carried out, put to somebody who may decide, or refused. */
export type Verdict =
  | { readonly decision: "run" }
  | AskVerdict
  | { readonly decision: "refuse"; readonly reason: string };

/** Names of untrusted texts in a reason. */
const namedMost = 3;

const reaching = "it reaches beyond this conversation, and untrusted text was read before";

const run: Verdict = { decision: "run" };
const refuse = (reason: string): Verdict => ({ decision: "refuse", reason });

const levelFor = (kind: OperationKind): Level => (kind === "read" ? "use" : "operate");

/** Least level that people need to command a tool; where that depends on the input, the gate may want more. */
export const levelToCommand = ({ kind }: AnyTool): Level => (typeof kind === "function" ? "use" : levelFor(kind));

const allows = (mode: Mode, kind: OperationKind): boolean => modes.indexOf(kind) <= modes.indexOf(mode);

/** The mode that holds where a room has one of its own: the stricter of both. */
export const modeIn = ({ settings }: Pick<Agent, "settings">, ofRoom: string | null): Mode => {
  const room = modes.find((mode) => mode === ofRoom);
  return room !== undefined && modes.indexOf(room) < modes.indexOf(settings.mode) ? room : settings.mode;
};

/** True if an operation of this kind that is not the agent's `isOwn` would be carried out here without asking. */
export const isPermitted = async (
  kind: OperationKind,
  { agent, by, level, roomId, rooms }: Pick<ToolContext, "agent" | "by" | "level" | "roomId" | "rooms">,
): Promise<boolean> =>
  includesLevel(level, levelFor(kind)) && (by === "person" || allows(modeIn(agent, await rooms.mode(roomId)), kind));

/** True if the call tells or changes something beyond the people of its conversation. */
export const reachesOutside = async ({
  tool,
  input,
  kind,
  ...context
}: Pick<Call, "input" | "kind" | "tool"> & PlaceContext): Promise<boolean> => {
  const { reachesOutside: said, sendsTo } = tool;
  if (said !== undefined) return typeof said === "function" ? said(input, context) : said;
  const target = await sendsTo?.(input, context);
  return kind === "update" || kind === "delete" || (target !== undefined && target !== context.roomId);
};

/**
 * The one place where it is decided whether an operation is carried out: mode ∩ rights of those it is done for ∩
 * walls ∩ what untrusted text may cause. A person's own command is never put to another: they would only ask
 * themselves. What is not carried out tells the caller, and those who are asked, why.
 */
export async function gate(call: Call): Promise<Verdict> {
  const { agent, by, kind, level, requesters, roomId, rooms, sources, tool } = call;
  const target = await tool.sendsTo?.(call.input, call);
  const isElsewhere = target !== undefined && target !== roomId;
  const isOwnAffair = typeof tool.isOwn === "function" ? tool.isOwn(call.input, call) : tool.isOwn === true;
  const isOwn = (isOwnAffair || target === roomId) && !isElsewhere;
  const needed: Level = isOwn && by === "model" ? "chat" : levelFor(kind);
  const lacksRights = !includesLevel(level, needed);
  const rights = `it needs the right to ${needed}, and those it is done for (${requesters.join(", ")}) have: ${level}`;
  if (lacksRights && by === "person") return refuse(`you need the right to ${needed} for it; you have: ${level}`);
  if (!includesLevel(level, "chat")) return refuse(rights);
  if (isOwn || (by === "person" && !isElsewhere)) return run;

  const {
    mode: ofRoom,
    isHeard,
    mayRead,
  } = await rooms.passage(roomId, { place: target ?? roomId, sources, owner: agent.owner });
  const wall = `not everybody who will see it in ${placeName(target)} may read all that was shown here`;
  if (isElsewhere && !isHeard) return refuse(`nobody is in ${placeName(target)}`);
  if (by === "person") return isElsewhere && !mayRead ? refuse(wall) : run;
  const mode = modeIn(agent, ofRoom);
  // Those for whom it is done may have said it themselves: what they may not do is asked for in any case.
  const taint = call.taint.filter((name) => !requesters.some((requester) => requester === name));
  const isWalled = isElsewhere && !mayRead;
  const reasons = [
    ...(lacksRights ? [rights] : []),
    ...(allows(mode, kind) ? [] : [`it would ${kind} something, and the mode here is ${mode}`]),
    ...(isWalled ? [wall] : []),
    ...(taint.length > 0 && (await reachesOutside(call)) ? [`${reaching}: ${someOf(taint)}`] : []),
  ];
  if (reasons.length === 0) return run;
  return {
    decision: "ask",
    reason: reasons.join("; "),
    lacksRights,
    ...(isWalled && { wall: { place: target, text: wall } }),
  };
}

/** The first of the names; the others are told beside it. */
const someOf = (names: readonly string[]): string =>
  names.slice(0, namedMost).join(", ") + (names.length > namedMost ? ` and ${names.length - namedMost} more` : "");

const placeName = (place: RoomId | undefined): string =>
  place === undefined || place === "" ? "the agent's own files" : place;
