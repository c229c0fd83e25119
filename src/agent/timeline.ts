import type { TimelineEntry } from "../context/types.ts";
import type { StoredEvent } from "../database/events.ts";
import type { UserId } from "../lib/ids.ts";
import { readMessage } from "../matrix/message.ts";
import { readMember } from "../matrix/state.ts";

/** A stored event as agents see it. */
export function timelineEntry(event: StoredEvent): TimelineEntry {
  const common = { eventId: event.eventId, roomId: event.roomId, at: event.sentAt, sender: event.sender };
  const message = readMessage(event);
  if (message) {
    const { msgtype, body, threadId, replyTo, formattedDiffers } = message;
    const edited = event.editedAt !== null;
    return { kind: "message", ...common, messageType: msgtype, body, threadId, replyTo, formattedDiffers, edited };
  }
  const member = event.type === "m.room.member" ? readMember(event.content) : undefined;
  return {
    kind: "roomEvent",
    ...common,
    eventType: event.type,
    ...(member && { target: event.stateKey as UserId, membership: member.membership }),
  };
}
