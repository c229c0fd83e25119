import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Stamp } from "../../domain/files/stamp.ts";
import type { ToolContext } from "./tool.ts";

/** Place from which a call comes, and people for whom it is made. */
export interface Origin {
  readonly agent: Agent;
  /** The conversation's room, '' at home. */
  readonly roomId: RoomId;
  readonly thread: ThreadPlace | undefined;
  /** Stays equal however often the call is run. */
  readonly key: string;
  /** Root of the chain of turns, as `WakeDraft` has it. */
  readonly chain: string;
  readonly by: "model" | "person";
  readonly requesters: readonly UserId[];
  /** Messages by which it was asked for, as far as they are remembered: memory does not answer them with themselves. */
  readonly causes?: readonly EventId[];
  /** Person who lends their level, where the requesters lack the one that it needs. */
  readonly approvedBy?: UserId;
  /** See `Actor`. */
  readonly approved?: readonly Stamp[] | undefined;
  /** Sources that those who will read the result have been shown already; see `History.mayReadAll`. */
  readonly sources: readonly RoomId[];
  /** Untrusted texts among that; see `untrusted`. */
  readonly taint: readonly string[];
  /** Number of the todo that it is done for. */
  readonly todo?: number | undefined;
  readonly signal: AbortSignal;
  /** As `ToolContext` has it. */
  readonly showProgress?: ToolContext["showProgress"];
  /** As `ToolContext` has it; without it, the call is a person's. */
  readonly delegate?: ToolContext["delegate"];
}
