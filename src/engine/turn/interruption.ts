import type { Conversation } from "../../base/lib/ids.ts";

/** Why work on a turn breaks off before its end. What a turn throws beside these is trouble. */

/** People were asked: the turn is parked, and goes on with what they decide. */
export class Parked extends Error {
  override readonly name = "Parked";
  /** The agent's conversations that wait. */
  readonly waiting: readonly Conversation[];

  constructor(waiting: readonly Conversation[]) {
    super("the turn is parked until people have decided");
    this.waiting = waiting;
  }
}

/** A person has ended the turn. */
export class Stopped extends Error {
  override readonly name = "Stopped";
}

/** Somebody is there who may not read all that the turn was shown: nothing was said, and it has to look anew. */
export class SomebodyCame extends Error {
  override readonly name = "SomebodyCame";
}

export const partly = "Whether any of it was done is not known.";

/** Text for the agent about a call that was stopped. */
export const interruptionText = (why: string): string => `Interrupted: ${why}. ${partly}`;
