import type { UserId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { memoEach } from "../lib/memo.ts";
import { type Element, element } from "../lmml/element.ts";
import { clip } from "./measure.ts";
import { localTime } from "./time.ts";
import { mediaAttributes } from "./timeline.ts";
import type { LogEntry, TimelineEntry } from "./types.ts";

/** Matches what no full user id can be: those have a colon. */
const plainLocalpart = /^[a-z0-9._=/+-]{1,64}$/;

/** A user of our own server by the localpart, everybody else by the full id: neither can be taken for the other. */
export const shortName = (userId: UserId, server: string): string => {
  const { localpart } = splitUserId(userId);
  return plainLocalpart.test(localpart) && userId === `@${localpart}:${server}` ? localpart : clip(userId);
};

/** An event of a room without what is said once for many: its room, its time, our server. `self`: who reads it. */
export const leanEntry = memoEach(
  (entry: TimelineEntry, self: UserId): LogEntry => ({
    source: entry.roomId,
    at: entry.at,
    eventId: entry.eventId,
    element: leanElement(entry, self),
  }),
);

const leanElement = (entry: TimelineEntry, self: UserId): Element => {
  const { server } = splitUserId(self);
  const by = entry.sender === self ? { sent: true } : { sender: shortName(entry.sender, server) };
  const numberOf = (eventId: string | undefined) => eventId && (entry.numbers?.[eventId] ?? clip(eventId));
  if (entry.kind === "message")
    return element(
      "message",
      {
        id: entry.number ?? entry.eventId,
        ...by,
        messageType: entry.messageType === "m.text" ? undefined : clip(entry.messageType),
        threadId: numberOf(entry.threadId),
        replyTo: numberOf(entry.replyTo),
        edited: entry.isEdited,
        formattedDiffers: entry.formattedDiffers,
        encrypted: entry.isEncrypted,
        ...(entry.media && mediaAttributes(entry.media)),
      },
      entry.body,
    );
  const { eventType, membership, reaction, target, sender } = entry;
  return element("roomEvent", {
    eventType: membership === undefined && !reaction ? clip(eventType) : undefined,
    ...by,
    target: target === undefined || target === sender ? undefined : shortName(target, server),
    membership: membership === undefined ? undefined : clip(membership),
    ...(reaction && { key: clip(reaction.key, 64), relatesTo: numberOf(reaction.to) }),
  });
};

/** A time in the zone: the date, and the clock to the minute. */
export interface ClockTime {
  readonly date: string;
  readonly minute: string;
}

export const clockTime = memoEach((at: Date, timeZone: string): ClockTime => {
  const [date = "", clock = ""] = localTime(at, timeZone).split(" ");
  return { date, minute: clock.slice(0, 5) };
});

/** The element with a time, behind its `id` if it has one. */
export const withTimestamp = (bare: Element, timestamp: string): Element => {
  const { id, ...rest } = bare.attributes;
  return { ...bare, attributes: { ...(id !== undefined && { id }), timestamp, ...rest } };
};

/** A new event: its time without the date where it is of today. */
export const leanNews = (
  entry: TimelineEntry,
  self: UserId,
  { now, timeZone }: { now: Date; timeZone: string },
): Element => {
  const { date, minute } = clockTime(entry.at, timeZone);
  const isToday = clockTime(now, timeZone).date === date;
  return withTimestamp(leanEntry(entry, self).element, isToday ? minute : `${date} ${minute}`);
};
