import { z } from "zod";
import { roomToSpeakIn } from "../agent/room.ts";
import { defineTool } from "../agent/tool.ts";
import { eventTime } from "../context/time.ts";
import type { EventId, RoomId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { element } from "../lmml/element.ts";
import { reactionContent } from "../matrix/reaction.ts";

export const tool = defineTool({
  name: "React",
  set: "core",
  examples: ["$abc123 👍"],
  description: "Answers to a message with a single sign, such as 👍, which people see below it.",
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  repeatable: true,
  immediate: true,
  input: z.object({
    roomId: z.string().min(1).describe("The room of the message; without it, the one you are in").optional(),
    eventId: z
      .string()
      .regex(/^\$.{1,254}$/)
      .describe("The eventId of the message, which begins with $"),
    key: z.string().trim().min(1).max(64).describe("The sign: one emoji"),
  }),
  async run({ eventId, key: sign, roomId: named }, context) {
    const { agent, key, now } = context;
    const roomId = await roomToSpeakIn(named, context);
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
