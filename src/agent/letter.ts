import type { WakeDraft } from "../database/routing.ts";
import { UserError } from "../lib/errors.ts";
import { HOME } from "../lib/ids.ts";
import { render } from "../lmml/render.ts";
import type { Agent } from "./agent.ts";
import type { Mind } from "./mind.ts";
import type { Letter } from "./sensor.ts";
import type { Origin } from "./tool-context.ts";

/**
 * What an agent tells another, as the wake that its recipient's sensors make of it, at home: for the human who began the
 * chain, whose budget it spends, and tainted by whoever wrote it.
 * @throws UserError where the chain has nothing left, or nothing notices letters
 */
export async function deliver(
  { chains, sensors }: Pick<Mind, "chains" | "sensors">,
  { agent, by, chain, key, taint }: Origin,
  letter: Omit<Letter, "from">,
): Promise<WakeDraft> {
  const { onBehalfOf, to } = letter;
  const observation = sensors.flatMap((sensor) => sensor.receive?.({ ...letter, from: agent }) ?? [])[0];
  if (!observation) throw new UserError(`${to.name} has no mailbox: no sensor of this bridge notices letters.`);
  if (by === "model" && (await chains.left(chain)) <= 0)
    throw new UserError(
      "too many turns of agents go back to one message by a person. Only a person can go on from here.",
    );
  return {
    agent: to.name,
    roomId: HOME,
    reason: observation.reason,
    key,
    requester: onBehalfOf,
    chain,
    ...(observation.note && { note: render(observation.note) }),
    taint: [...new Set([...taint, agent.userId])].filter((name) => name !== to.userId),
  };
}

/** @throws UserError for who cannot be told anything */
export function mayBeTold(to: Agent, from: Agent): Agent {
  if (to.name === from.name) throw new UserError("you cannot tell yourself anything: think, or use Schedule.");
  if (to.pausedAt !== null) throw new UserError(`${to.name} is paused, and hears nothing until somebody resumes it.`);
  return to;
}
