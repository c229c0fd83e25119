import { z } from "zod";
import { reactionContent } from "../../adapters/matrix/reaction.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { EventId, RoomId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { element } from "../../base/lmml/element.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { roomToSpeakIn } from "../../domain/speech/speaking.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const isMessage = (type: string): boolean => type === "m.room.message" || type === "m.sticker";

export const tool = defineTool({
  name: "React",
  set: "core",
  examples: ["$abc123 👍"],
  topic: "speaking",
  description: "Answers to a message with a single sign, such as 👍, which people see below it.",
  help: "Has the agent answer a message with a single sign, such as 👍, which stands below it.",
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  repeatable: true,
  immediate: true,
  input: z.object({
    roomId: z.string().min(1).describe("The room of the message; without it, the conversation's own").optional(),
    eventId: z
      .string()
      .regex(/^\$.{1,254}$/)
      .describe("The eventId of the message, which begins with $"),
    key: z.string().trim().min(1).max(64).describe("The sign: one emoji"),
  }),
  async run({ eventId, key: sign, roomId: named }, context) {
    const { agent, events, key, now } = context;
    const roomId = await roomToSpeakIn(named, context);
    const message = await events.find(eventId as EventId);
    // A redacted event has no content any more.
    if (message?.roomId !== roomId || !isMessage(message.type) || Object.keys(message.content).length === 0) {
      throw new UserError(
        `There is no message ${eventId} in the room ${roomId}: take the eventId of one that you see.`,
      );
    }
    const reaction = { target: eventId as EventId, key: sign };
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
