import { UserError } from "../../base/lib/errors.ts";
import type { AgentName } from "../../base/lib/ids.ts";
import { nearest, shortenTyped } from "../../base/lib/nearest.ts";
import type { Agent, AgentDirectory } from "./agent.ts";

/** The agent of this name; a `UserError` that guesses which was meant where there is none. */
export async function requireAgent(directory: AgentDirectory, name: string): Promise<Agent> {
  const agent = await directory.find(name as AgentName);
  if (agent) return agent;
  const names = (await directory.table.all()).map((row) => row.name);
  const meant = nearest(name, names);
  throw new UserError(
    `There is no agent ${shortenTyped(name)}.${meant === undefined ? "" : ` Did you mean ${meant}?`}`,
  );
}
