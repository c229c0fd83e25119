import type { EventId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";

/** Place in a thread at which something is said. */
export interface ThreadPlace {
  /** The event that the thread is about. */
  readonly root: EventId;
  /** The newest event in it that is known: the one that is answered, for clients that know no threads. */
  readonly latest: EventId;
}

/** Finds the place to answer an event that stands in the thread `root`; undefined: it stands in none. */
export const threadPlaceOf = (root: EventId | undefined, eventId: EventId): ThreadPlace | undefined =>
  root === undefined ? undefined : { root, latest: eventId };

/** The part of a message's content that says where it belongs: empty for one that is neither in a thread nor a reply. */
export const relationTo = (thread: ThreadPlace | undefined, replyTo?: EventId) => {
  const reply = replyTo ?? thread?.latest;
  if (reply === undefined) return {};
  const inReplyTo = { "m.in_reply_to": { event_id: reply } };
  if (thread === undefined) return { "m.relates_to": inReplyTo };
  const inThread = { rel_type: "m.thread", event_id: thread.root, is_falling_back: replyTo === undefined };
  return { "m.relates_to": { ...inThread, ...inReplyTo } };
};

/** A message's content as an edit, which lacks the event that it is about: see `withTarget`. */
export const asEdit = <Content extends { readonly body: string }>(content: Content) => ({
  ...content,
  body: `* ${content.body}`,
  "m.new_content": content,
  "m.relates_to": { rel_type: "m.replace" },
});

/** Content whose relation (a reaction, an edit) lacks the event that it relates to, with this event in it. */
export const withTarget = (content: Readonly<Record<string, unknown>>, eventId: EventId): Record<string, unknown> => ({
  ...content,
  "m.relates_to": { ...(isObject(content["m.relates_to"]) && content["m.relates_to"]), event_id: eventId },
});

/** The text of an edit as a message of its own, which answers the event that it would have changed. */
export const asAnswer = (edit: Readonly<Record<string, unknown>>, target: EventId): Record<string, unknown> => ({
  ...(isObject(edit["m.new_content"]) && edit["m.new_content"]),
  ...relationTo(undefined, target),
  "org.clevernet.key": edit["org.clevernet.key"],
});

/** The event that `withTarget` has filled in. */
export const relatedEvent = (content: Readonly<Record<string, unknown>>): EventId => {
  const relation = content["m.relates_to"];
  if (!isObject(relation) || typeof relation.event_id !== "string") throw new Error("it relates to no event");
  return relation.event_id as EventId;
};
