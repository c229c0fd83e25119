import { z } from "zod";
import type { RoomId } from "../../base/lib/ids.ts";
import { relatedIn } from "../../domain/speech/related.ts";
import { roomToSpeakIn, sentMessage, threadToSpeakIn } from "../../domain/speech/speaking.ts";
import { utter } from "../../domain/speech/utter.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "SendMessage",
  set: "core",
  command: "say",
  examples: ["Good morning", "--threadId $abc123 I am on it."],
  topic: "speaking",
  description: "Says something in a room, in Markdown. This is how people and other agents hear you.",
  help: "Has the agent say something in a room, in Markdown.",
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  repeatable: true,
  immediate: true,
  input: z.object({
    roomId: z
      .string()
      .min(1)
      .describe("The room to speak in, such as !abc:example.org; without it, the conversation's own")
      .optional(),
    threadId: z
      .string()
      .min(1)
      .describe("The thread to speak in; without it, the one in which this is asked")
      .optional(),
    replyTo: z.string().min(1).describe("The eventId of the message that this answers").optional(),
    final: z.boolean().describe("true: nothing is left to do after this, and the turn ends").optional(),
    content: z.string().trim().min(1).describe("What to say"),
  }),
  async run({ content, final, replyTo, roomId: named, threadId }, context) {
    const { agent, events, key, rooms } = context;
    const roomId = await roomToSpeakIn(named, context);
    const root = threadId === undefined ? undefined : (await relatedIn(roomId, threadId, events)).root;
    const answered = replyTo === undefined ? undefined : (await relatedIn(roomId, replyTo, events)).eventId;
    const thread = threadToSpeakIn(root, roomId, context);
    const members = content.includes("@") ? await rooms.joined(roomId) : [];
    const outbox = utter({
      sender: agent.userId,
      roomId,
      text: content,
      thread,
      replyTo: answered,
      members,
      key,
    });
    const result = sentMessage(context, roomId, { messageType: "m.text", threadId: thread?.root, replyTo }, content);
    return { result, outbox, speaksIn: roomId, endsTurn: final ?? false };
  },
});
