import { UserError } from "../lib/errors.ts";
import type { EventId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import type { World } from "./types.ts";

/** Collects the ids of messages and reactions: a redaction of one of them empties this render. */
export const eventIdsIn = ({ attributes, children }: Element): EventId[] => {
  const own = typeof attributes.eventId === "string" ? [attributes.eventId as EventId] : [];
  return typeof children === "string" ? own : [...own, ...children.flatMap(eventIdsIn)];
};

/** `left` characters, a negative number, remain beside the tags that are always there. */
export const frameTooLarge = ({ agent, charsMax }: World, left: number): UserError =>
  new UserError(
    `The context of ${agent.userId} is too small: approxContextCharsMax is ${charsMax}, and what is always shown takes ${charsMax - left} characters. Raise it in agent.json.`,
  );
