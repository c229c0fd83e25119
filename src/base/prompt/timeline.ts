import { memoEach } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { keepRendered } from "../lmml/render.ts";
import { clip } from "./measure.ts";
import { eventTime } from "./time.ts";
import type { MediaView, TimelineEntry } from "./types.ts";

const clipOptional = (value: string | undefined): string | undefined => (value === undefined ? undefined : clip(value));

export const mediaAttributes = ({ name, path, contentType, bytes, width, height, missing }: MediaView) => ({
  fileName: clipOptional(name),
  path: clipOptional(path),
  contentType: clipOptional(contentType),
  bytes,
  width,
  height,
  missing: clipOptional(missing),
});

/** One event of a room as the agent reads it. `systemId` is the name of the homeserver. */
const timelineElement = memoEach(
  (entry: TimelineEntry, systemId: string): Element => keepRendered(elementOf(entry, systemId)),
);

/** Writes events as the layout `seed` shows them. */
export const timelineWriter =
  ({ serverName }: { readonly serverName: string }) =>
  (entry: TimelineEntry): Element =>
    timelineElement(entry, serverName);

const elementOf = (entry: TimelineEntry, systemId: string): Element => {
  const place = { systemId: clip(systemId), roomId: clip(entry.roomId), timestamp: eventTime(entry.at) };
  if (entry.kind === "roomEvent")
    return element("roomEvent", {
      ...place,
      eventType: clip(entry.eventType),
      sender: clip(entry.sender),
      target: clipOptional(entry.target),
      membership: clipOptional(entry.membership),
      ...(entry.reaction && {
        key: clip(entry.reaction.key, 64),
        relatesTo: clip(entry.reaction.to),
        eventId: entry.eventId,
      }),
    });
  return element(
    "message",
    {
      ...place,
      sender: clip(entry.sender),
      messageType: clip(entry.messageType),
      threadId: clipOptional(entry.threadId),
      replyTo: clipOptional(entry.replyTo),
      eventId: entry.eventId,
      edited: entry.isEdited,
      formattedDiffers: entry.formattedDiffers,
      encrypted: entry.isEncrypted,
      ...(entry.media && mediaAttributes(entry.media)),
    },
    entry.body,
  );
};
