import { z } from "zod";
import { roomToSpeakIn, sentMessage, threadToSpeakIn } from "../agent/room.ts";
import { utter } from "../agent/speech.ts";
import { defineTool } from "../agent/tool.ts";
import type { EventId, RoomId } from "../lib/ids.ts";

export const tool = defineTool({
  name: "SendMessage",
  set: "core",
  command: "say",
  examples: ["Good morning", "--threadId $abc123 I am on it."],
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
  async run({ content, final, replyTo, roomId: named, threadId }, context) {
    const { agent, key, rooms } = context;
    const roomId = await roomToSpeakIn(named, context);
    const thread = threadToSpeakIn(threadId, roomId, context);
    const members = content.includes("@") ? await rooms.joined(roomId) : [];
    const outbox = utter({
      sender: agent.userId,
      roomId,
      text: content,
      thread,
      replyTo: replyTo as EventId | undefined,
      members,
      key,
    });
    const result = sentMessage(context, roomId, { messageType: "m.text", threadId: thread?.root, replyTo }, content);
    return { result, outbox, speaksIn: roomId, endsTurn: final ?? false };
  },
});
