import { z } from "zod";
import { reactionContent } from "../../adapters/matrix/reaction.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { element } from "../../base/lmml/element.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { findRelated } from "../../domain/speech/related.ts";
import { roomToSpeakIn } from "../../domain/speech/speaking.ts";
import { eventName } from "../../engine/operations/event-name.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "React",
  set: "core",
  examples: ["17 👍"],
  topic: "speaking",
  description: "Answers a message with a single sign, such as 👍.",
  help: "Has the agent react to a message with an emoji, such as 👍.",
  wording: ({ roomId }) => (roomId === undefined ? "React with {key}" : "React with {key} in {roomId}"),
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  isLogged: false,
  isRepeatable: true,
  isImmediate: true,
  input: z.object({
    roomId: z
      .string()
      .min(1)
      .meta({
        description: "Default: the conversation's own",
        help: "The room of the message; without it, this room",
      })
      .optional(),
    eventId: eventName.meta({ description: "id of the message", help: "The message: its number or its id" }),
    key: z.string().trim().min(1).max(64).meta({ help: "One emoji" }),
  }),
  async run({ eventId, key: sign, roomId: named }, context) {
    const { agent, events, key, now } = context;
    const roomId = await roomToSpeakIn(named, context);
    const message = await findRelated(roomId, eventId, events);
    const reaction = { target: message.eventId, key: sign };
    const result = element("roomEvent", {
      systemId: splitUserId(agent.userId).server,
      roomId,
      timestamp: eventTime(now),
      eventType: "m.reaction",
      sender: agent.userId,
      key: sign,
      relatesTo: eventId,
      sent: true,
    });
    const content = { ...reactionContent(reaction), "org.clevernet.key": key };
    return { result, outbox: [{ key, roomId, sender: agent.userId, kind: "reaction", content }], speaksIn: roomId };
  },
});
