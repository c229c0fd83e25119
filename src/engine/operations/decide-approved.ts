import type { UserId } from "../../base/lib/ids.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { type OperationRequest, toRefused, withSources } from "./operation.ts";
import type { Origin } from "./origin.ts";
import { type Decided, decide } from "./protocol.ts";
import { type ToolServices, toolContext } from "./tool-context.ts";

/** An operation that somebody has approved. */
export type Approved = Operation & { readonly decidedBy: UserId };

/**
 * Decides on a call that a person has approved, by what the gate says now. The approval overcomes what the person was
 * asked about; it lends their level, and lets out what they saw over the wall that they were told of. Not a new wall.
 */
export async function decideApproved(
  services: ToolServices,
  request: OperationRequest,
  origin: Origin,
  { key, kind, askedWall, decidedBy }: Approved,
): Promise<Decided> {
  const row = { key };
  const lacksRights = (decided: Decided) => decided.decision === "ask" && decided.lacksRights;
  const asIs = await decide(request, await toolContext(services, origin));
  // The person has seen all of it, and lends their level; not what they may see.
  const bound = lacksRights(asIs) ? { ...origin, approvedBy: decidedBy } : origin;
  const decided = bound === origin ? asIs : await decide(request, await toolContext(services, bound));
  if (decided.decision === "refuse") return { ...decided, row };

  const { context } = decided;
  const refuse = (reason: string): Decided => ({
    decision: "refuse",
    row,
    ended: withSources(toRefused(request.tool, reason), context),
  });
  // An operation that was approved to create something does not overwrite what is there by now.
  const allowed = { decision: "run", request, kind, context, row } as const;
  if (decided.decision === "run") return allowed;
  if (decided.lacksRights) return refuse(decided.reason);
  if (decided.wall === undefined) return allowed;
  if (decided.wall.place !== askedWall) return refuse(decided.wall.text);
  return { ...allowed, context: await toolContext(services, { ...bound, sources: [] }), crossesWall: true };
}
