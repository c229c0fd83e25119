import type { EventId } from "../lib/ids.ts";
import { isObject } from "../lib/json.ts";

/** Where something is said in a thread. */
export interface ThreadPlace {
  /** The event that the thread is about. */
  readonly root: EventId;
  /** The newest event in it that is known: the one that is answered, for clients that know no threads. */
  readonly latest: EventId;
}

/** Where an event is answered that stands in the thread `root`, if it stands in one. */
export const answering = (root: EventId | undefined, eventId: EventId): ThreadPlace | undefined =>
  root === undefined ? undefined : { root, latest: eventId };

/** The part of a message's content that says where it belongs: empty for one that is neither in a thread nor a reply. */
export const relatesTo = (thread: ThreadPlace | undefined, replyTo?: EventId) => {
  const reply = replyTo ?? thread?.latest;
  if (reply === undefined) return {};
  const inReplyTo = { "m.in_reply_to": { event_id: reply } };
  if (thread === undefined) return { "m.relates_to": inReplyTo };
  const inThread = { rel_type: "m.thread", event_id: thread.root, is_falling_back: replyTo === undefined };
  return { "m.relates_to": { ...inThread, ...inReplyTo } };
};

/** Content whose relation (a reaction, an edit) lacks the event that it relates to, with this event in it. */
export const relatingTo = (content: Readonly<Record<string, unknown>>, eventId: EventId): Record<string, unknown> => ({
  ...content,
  "m.relates_to": { ...(isObject(content["m.relates_to"]) && content["m.relates_to"]), event_id: eventId },
});
