import type { EventId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";

/** Answer to an event by a single sign. */
export interface Reaction {
  readonly target: EventId;
  /** An emoji as a rule; any text may come. */
  readonly key: string;
}

/** Reads the content of an `m.reaction`; undefined if it is malformed. */
export const readReaction = (content: unknown): Reaction | undefined => {
  const relation = isObject(content) && isObject(content["m.relates_to"]) ? content["m.relates_to"] : {};
  const { rel_type: type, event_id: target, key } = relation;
  if (type !== "m.annotation" || typeof target !== "string" || typeof key !== "string") return undefined;
  return /^\$.{1,254}$/.test(target) && key !== "" ? { target: target as EventId, key } : undefined;
};

/** The content of an `m.reaction`. */
export const reactionContent = ({ target, key }: Reaction): Record<string, unknown> => ({
  "m.relates_to": { rel_type: "m.annotation", event_id: target, key },
});
