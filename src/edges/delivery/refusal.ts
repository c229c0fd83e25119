import type { HomeserverError } from "../../adapters/matrix/client.ts";
import { inlineCode } from "../../adapters/matrix/markdown.ts";
import type { ThreadPlace } from "../../adapters/matrix/relation.ts";
import { digest, type EventId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";

/** Kinds of rows that people wait to read. */
const spoken: ReadonlySet<string> = new Set(["message", "file", "media"]);
const mark = "refusal";

/**
 * Tells the people of a room of something that was to be said there and was given up: a short notice in its place. It
 * is refused as well where the sender may not speak there at all, and then there is no way to tell them.
 */
export const refusalNotice = (row: OutboxDraft, { status, errcode }: HomeserverError): OutboxDraft[] => {
  if (!spoken.has(row.kind) || row.key.startsWith(`${mark}.`)) return [];
  const { sender, roomId } = row;
  const why = inlineCode(`${status} ${errcode}`.trim());
  return utter({
    sender,
    roomId,
    text: `Something that I had to say here was not taken by the homeserver (${why}), and is given up. Those who run this bridge were told.`,
    // A relation may be the very thing that the homeserver does not take.
    thread: status === 400 ? undefined : threadIn(row.content),
    isNotice: true,
    key: `${mark}.${digest(row.key)}`,
  });
};

/** The thread that a row's content stands in; a text that is sent as a file names it in a field of its own. */
const threadIn = (content: unknown): ThreadPlace | undefined => {
  if (!isObject(content)) return undefined;
  const { thread, "m.relates_to": relation } = content;
  if (isObject(thread)) return thread as unknown as ThreadPlace;
  if (!isObject(relation) || relation.rel_type !== "m.thread") return undefined;
  const root = relation.event_id as EventId;
  const reply = relation["m.in_reply_to"];
  return { root, latest: isObject(reply) ? (reply.event_id as EventId) : root };
};
