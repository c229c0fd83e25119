import { z } from "zod";
import { utter } from "../agent/speech.ts";
import { defineTool } from "../agent/tool.ts";
import { eventTime } from "../context/time.ts";
import { UserError } from "../lib/errors.ts";
import { type EventId, HOME, type RoomId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { element } from "../lmml/element.ts";

export const tool = defineTool({
  name: "SendMessage",
  set: "core",
  command: "say",
  description: "Says something in a room, in Markdown. This is how people and other agents hear you.",
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  repeatable: true,
  immediate: true,
  input: z.object({
    roomId: z.string().min(1).describe("The room to speak in, as it stands in roomId").optional(),
    threadId: z.string().min(1).describe("The thread to speak in; without it, the one you were asked in").optional(),
    replyTo: z.string().min(1).describe("The eventId of the message that this answers").optional(),
    final: z.boolean().describe("true: nothing is left to do after this, and the turn ends").optional(),
    content: z.string().trim().min(1).describe("What to say"),
  }),
  async run({ content, final, replyTo, ...input }, { agent, key, now, rooms, roomId: here, threadId: hereThread }) {
    const roomId = (input.roomId ?? here) as RoomId;
    if (roomId === HOME) throw new UserError("Name the room to speak in: there is no room here.");
    const { agents, state } = await rooms.context(roomId);
    if (!agents.some(({ userId, membership }) => userId === agent.userId && membership === "join")) {
      throw new UserError(`You are not in the room ${roomId}. Speak in one of the rooms that you are shown.`);
    }
    if (state["m.room.encryption"]) throw new UserError(`The room ${roomId} is encrypted: you cannot speak there.`);
    const threadId = (input.threadId ?? (roomId === here ? hereThread : undefined)) as EventId | undefined;
    const members = content.includes("@") ? await rooms.joined(roomId) : [];
    const outbox = utter({
      sender: agent.userId,
      roomId,
      text: content,
      threadId,
      replyTo: replyTo as EventId | undefined,
      members,
      key,
    });
    const result = element(
      "message",
      {
        systemId: splitUserId(agent.userId).server,
        roomId,
        timestamp: eventTime(now),
        sender: agent.userId,
        messageType: "m.text",
        threadId,
        replyTo,
        sent: true,
      },
      content,
    );
    return { result, outbox, speaksIn: roomId, endsTurn: final ?? false };
  },
});
