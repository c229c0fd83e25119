import { readAttachment } from "../../adapters/matrix/attachment.ts";
import { readMessage } from "../../adapters/matrix/message.ts";
import { readReaction } from "../../adapters/matrix/reaction.ts";
import { readMember } from "../../adapters/matrix/state.ts";
import type { UserId } from "../../base/lib/ids.ts";
import { memo } from "../../base/lib/memo.ts";
import type { MediaView, TimelineEntry } from "../../base/prompt/types.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { SeenEvent } from "../../domain/tables/sight.ts";

/** A stored event as agents see it. */
export const timelineEntry = memo((event: StoredEvent & Partial<Pick<SeenEvent, "numbers">>): TimelineEntry => {
  const { eventId, roomId, sentAt: at, sender } = event;
  const common = {
    eventId,
    number: event.number ?? undefined,
    numbers: event.numbers ?? undefined,
    roomId,
    at,
    sender,
  };
  const message = readMessage(event);
  if (message) {
    const { msgtype, body, threadId, replyTo, formattedDiffers } = message;
    const isEdited = event.editedAt !== null;
    const media = mediaView(event);
    return {
      kind: "message",
      ...common,
      messageType: msgtype,
      body,
      threadId,
      replyTo,
      formattedDiffers,
      isEdited,
      isEncrypted: event.isEncrypted,
      media,
    };
  }
  const member = event.type === "m.room.member" ? readMember(event.content) : undefined;
  const reaction = event.type === "m.reaction" ? readReaction(event.content) : undefined;
  return {
    kind: "roomEvent",
    ...common,
    eventType: event.type,
    ...(member && { target: event.stateKey as UserId, membership: member.membership }),
    ...(reaction && { reaction: { key: reaction.key, to: reaction.target } }),
  };
});

function mediaView(event: StoredEvent): MediaView | undefined {
  const attachment = readAttachment(event);
  if (!attachment) return undefined;
  const name = attachment.isCaptioned ? attachment.name : undefined;
  switch (event.media?.state) {
    case "kept": {
      const { path, contentType, bytes, width, height } = event.media;
      return { name, path, contentType, bytes, width, height };
    }
    case "missing":
      return { name, missing: event.media.reason };
    case "pending":
      return { name, missing: "it is still being fetched" };
    default:
      return { name, missing: "it was sent before you came" };
  }
}
