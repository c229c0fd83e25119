import type { Agent } from "../../domain/agents/agent.ts";
import type { OperationRequest } from "../operations/operation.ts";
import type { Toolbox } from "../operations/toolbox.ts";

/** Most steps of a turn in the default mode. */
export const tidyingSteps = 5;

/** Tools of such a turn: all of them reach no further than the conversation. */
const tidyingTools: ReadonlySet<string> = new Set([
  "recall_memory",
  "SemanticSearch",
  "Remember",
  "set_fact",
  "update_status",
  "log_activity",
  "todos_list",
  "todos_done",
  "todos_remove",
]);

/** Names of those of them that the agent has, or that a sub-agent would lend it. */
export const toolsToTidy = (toolbox: Toolbox, agent: Agent): string[] =>
  toolbox
    .findCommandable(agent)
    .map(({ name }) => name)
    .filter((name) => tidyingTools.has(name));

/** Says why a call is not carried out in the default mode; undefined: it may be. */
export const findTidyingObstacle = ({ tool, input }: OperationRequest): string | undefined =>
  tool.name === "Remember" && input.shareable === true
    ? "Not carried out: in the default mode nothing is remembered for other rooms."
    : undefined;
