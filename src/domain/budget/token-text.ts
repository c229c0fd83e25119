import type { StepSpending } from "../tables/budgets.ts";
import type { CallUnderWay } from "./metered-model.ts";

export const thousands = new Intl.NumberFormat("en");

/** Says how much a step's call has cost, and how much of that each message. */
export function stepSpendingText(spending: StepSpending): string {
  const { promptTokens, cachedTokens, completionTokens, costUsd, isEstimated, model, shares } = spending;
  const about = isEstimated ? "about " : "";
  const cached = cachedTokens > 0 ? ` (${thousands.format(cachedTokens)} from the cache)` : "";
  const cost = costUsd === null ? "" : `, ${costUsd.toFixed(4)} USD`;
  const parts = (shares ?? []).map(({ role, tokens }) => `${role} ${thousands.format(tokens)}`);
  const all = `${model}: ${about}${thousands.format(promptTokens)} tokens read${cached}, ${thousands.format(completionTokens)} written${cost}`;
  return [all, ...(parts.length > 0 ? [`of those read: ${parts.join(", ")}`] : [])].join("\n");
}

/** Says how far a running call is. */
export const underWayText = ({ agent, model, milliseconds, promptTokens, completionTokens }: CallUnderWay): string =>
  `${agent} asks ${model}, for ${Math.round(milliseconds / 1_000)} s: about ${thousands.format(promptTokens)} tokens read, about ${thousands.format(completionTokens)} written so far`;
