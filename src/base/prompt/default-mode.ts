import type { WakeReason } from "./types.ts";

/** True of a turn in the default mode: it tidies what the agent keeps of the conversation, and says nothing to anybody. */
export const isTidying = ({ reason }: { readonly reason: WakeReason }): boolean => reason === "default mode";

/** Stands in place of the words about how the agent speaks. */
export const tidyingReminder =
  "Nobody hears you in this turn. Tidy what you keep of this conversation, with few calls, then end the turn: keep as facts (set_fact) what was said here and will matter; where two facts in facts.json say the same thing, keep one of them (an empty value removes a fact); close todos that are done; bring your status up to date. If there is nothing to do, end the turn at once.";
