import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Chains } from "../../domain/tables/chains.ts";
import type { WakeDraft } from "../../domain/tables/effects.ts";
import type { Origin } from "./origin.ts";
import type { Letter, Sensor } from "./sensor.ts";

/** Services by which a letter reaches another agent. */
export interface LetterServices {
  readonly chains: Chains;
  readonly sensors: readonly Sensor[];
}

/**
 * Makes of a letter the wake that its recipient's sensors see in it, at home: for the human who began the chain, whose
 * budget it spends, and tainted by its writer.
 * @throws UserError where the chain has nothing left, or nothing notices letters
 */
export async function deliver(
  { chains, sensors }: LetterServices,
  { agent, by, chain, key, taint }: Origin,
  letter: Omit<Letter, "from">,
): Promise<WakeDraft> {
  const { onBehalfOf, to } = letter;
  const observation = sensors.flatMap((sensor) => sensor.receive?.({ ...letter, from: agent }) ?? [])[0];
  if (!observation) throw new UserError(`${to.name} has no mailbox: no sensor of this bridge notices letters.`);
  if (by === "model" && (await chains.countRemaining(chain)) <= 0)
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
    ...(observation.note && { note: toStored(observation.note) }),
    taint: [...new Set([...taint, agent.userId])].filter((name) => name !== to.userId),
  };
}

/** @throws UserError for who cannot be told anything */
export function requireReachable(to: Agent, from: Agent): Agent {
  if (to.name === from.name) throw new UserError("you cannot tell yourself anything: think, or use Schedule.");
  if (to.pausedAt !== null) throw new UserError(`${to.name} is paused, and hears nothing until somebody resumes it.`);
  return to;
}
